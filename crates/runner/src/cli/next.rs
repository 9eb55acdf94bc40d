//! `runner next`: when jobs fire.

use std::io::{self, Write};

use chrono::{DateTime, NaiveDateTime, Utc};
use chrono_tz::Tz;

use super::error::CliError;
use super::format::{Format, print_json};
use super::invocation::Invocation;
use super::table::TextTable;
use crate::config::Config;
use crate::firing::{JobName, instant};
use crate::schedule::{ScheduleError, Timetable, parse_duration};
use crate::views::InstantView;

/// How many firings are listed when neither `--count` nor `--until` bounds them.
const DEFAULT_COUNT: usize = 10;
/// How many are listed when only `--until` bounds them.
const MOST: usize = 100_000;

/// Lists the instants at which jobs will fire
#[derive(Clone, Debug, clap::Args)]
pub(super) struct NextArgs {
    /// Only this job; without it, all jobs
    #[arg(conflicts_with = "schedule")]
    job: Option<String>,

    /// How many firings of each job [default: 10, or all up to --until]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,

    /// Only firings after this instant (exclusive) [default: now]
    #[arg(long, value_name = "TIME", value_parser = read_instant)]
    after: Option<DateTime<Utc>>,

    /// Only firings up to this instant (inclusive)
    #[arg(long, value_name = "TIME", value_parser = read_instant)]
    until: Option<DateTime<Utc>>,

    /// A schedule instead of jobs: a cron expression, `every 30s`, or `at TIME`; reads no file
    #[arg(long, value_name = "EXPR")]
    schedule: Option<String>,

    /// The time zone of --schedule
    #[arg(long, value_name = "ZONE", requires = "schedule", default_value = "UTC", value_parser = read_zone)]
    timezone: Tz,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl NextArgs {
    pub(super) fn run(&self, invocation: &Invocation<'_>) -> Result<(), CliError> {
        self.list(invocation, &mut io::stdout(), &mut io::stderr())
    }

    /// Prints the list to `out`, and remarks about it to `notes`.
    fn list(
        &self,
        invocation: &Invocation<'_>,
        out: &mut dyn Write,
        notes: &mut dyn Write,
    ) -> Result<(), CliError> {
        let table = TextTable::new(["JOB", "UTC", "LOCAL", "CLOCKS"]).without_empty_columns();
        let after = self.after.unwrap_or(invocation.now);
        let list = List { args: self, after, table, out, notes };
        match &self.schedule {
            Some(schedule) => list.of_schedule(schedule, self.timezone),
            None => list.of_jobs(&invocation.config()?, self.job.as_deref()),
        }
    }
}

/// The list as it is made: each row of JSON is printed at once. A table is printed at the end, because its
/// columns are as wide as the longest cell.
struct List<'a> {
    args: &'a NextArgs,
    /// Firings after this instant.
    after: DateTime<Utc>,
    table: TextTable<4>,
    out: &'a mut dyn Write,
    /// Where remarks about the list go.
    notes: &'a mut dyn Write,
}

impl List<'_> {
    /// Lists the firings of a schedule that belongs to no job.
    fn of_schedule(mut self, text: &str, zone: Tz) -> Result<(), CliError> {
        let timetable = read_schedule(text, zone).map_err(CliError::Schedule)?;
        for warning in timetable.warnings() {
            writeln!(self.notes, "note: {warning}")?;
        }
        self.add(None, &timetable, zone)?;
        Ok(self.end()?)
    }

    /// Lists the firings of the jobs of `config`, or of one of them.
    fn of_jobs(mut self, config: &Config, only: Option<&str>) -> Result<(), CliError> {
        let jobs = match only {
            Some(name) => match config.job(name) {
                Some(job) => std::slice::from_ref(job),
                None => return Err(CliError::unknown_job(name, config)),
            },
            None => &config.jobs,
        };
        for job in jobs {
            if job.enabled {
                self.add(Some(&job.name), &job.timetable, job.timezone)?;
            } else {
                writeln!(self.notes, "note: {} does not fire: enabled = false", job.name)?;
            }
        }
        Ok(self.end()?)
    }

    fn add(&mut self, job: Option<&JobName>, timetable: &Timetable, zone: Tz) -> io::Result<()> {
        let NextArgs { count, until, format, .. } = *self.args;
        let of_job = job.map(|job| format!(" of {job}")).unwrap_or_default();
        let most = match (count, until) {
            (Some(count), _) => usize::try_from(count).unwrap_or(usize::MAX),
            (None, None) => DEFAULT_COUNT,
            (None, Some(_)) => MOST,
        };
        let mut firings = timetable.between(self.after, until.unwrap_or(DateTime::<Utc>::MAX_UTC));
        let mut listed = 0;
        for firing in firings.by_ref().take(most) {
            listed += 1;
            match format {
                Format::Json => print_json([InstantView::new(job, firing)], self.out)?,
                Format::Text => self.table.add([
                    job.map(JobName::to_string).unwrap_or_default(),
                    instant(firing),
                    format!("{} {zone}", firing.with_timezone(&zone).format("%a %Y-%m-%d %H:%M:%S %:z")),
                    timetable.dst_note(firing, zone).map(|note| note.to_string()).unwrap_or_default(),
                ]),
            }
        }
        if listed == 0 {
            let until = until.map(|until| format!(" until {}", instant(until))).unwrap_or_default();
            writeln!(self.notes, "note: no firing{of_job} after {}{until}", instant(self.after))?;
        }
        if count.is_none() && listed == MOST && firings.next().is_some() {
            writeln!(self.notes, "note: the first {MOST} firings{of_job}; there are more, see --count")?;
        }
        Ok(())
    }

    fn end(self) -> io::Result<()> {
        if self.table.is_empty() { Ok(()) } else { self.table.print(self.out) }
    }
}

/// A schedule as `check` prints it: a cron expression, `every 30s`, or `at 2026-06-01T00:00:00Z`.
fn read_schedule(text: &str, zone: Tz) -> Result<Timetable, ScheduleError> {
    let refuse = |error: String| ScheduleError { message: error };
    if let Some(period) = text.strip_prefix("every ") {
        let period = parse_duration(period).map_err(|invalid| match invalid.hint {
            Some(hint) => refuse(format!("every: {}; {hint}", invalid.message)),
            None => refuse(format!("every: {}", invalid.message)),
        })?;
        return Timetable::every(period);
    }
    if let Some(at) = text.strip_prefix("at ") {
        return Timetable::at(read_instant(at.trim()).map_err(|error| refuse(format!("at: {error}")))?);
    }
    Timetable::cron(text, zone, None)
}

fn read_instant(text: &str) -> Result<DateTime<Utc>, String> {
    DateTime::parse_from_rfc3339(text)
        .map(|at| at.to_utc())
        .or_else(|_| NaiveDateTime::parse_from_str(text, "%Y-%m-%dT%H:%MZ").map(|at| at.and_utc()))
        .map_err(|_| "write an instant with its zone, as in 2026-03-29T01:00:00Z".into())
}

fn read_zone(text: &str) -> Result<Tz, String> {
    text.parse().map_err(|_| "write the name of an IANA zone, as in Europe/Berlin".into())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use clap::{Args, FromArgMatches};

    use super::*;
    use crate::config::Environment;
    use crate::registry::Registry;

    const FILE: &str = r#"
        [defaults]
        kind = "command"
        timezone = "Europe/Berlin"
        params = { argv = ["true"] }

        [jobs.billing]
        schedule = "30 2 * * *"

        [jobs.report]
        every = "1h"

        [jobs.asleep]
        schedule = "@daily"
        enabled = false
    "#;

    fn parse(words: &[&str]) -> Result<NextArgs, clap::Error> {
        let command = NextArgs::augment_args(clap::Command::new("next").no_binary_name(true));
        NextArgs::from_arg_matches(&command.try_get_matches_from(words)?)
    }

    /// What is printed about the jobs of `file`, or about a schedule, and what is noted.
    fn next_of(file: &Path, words: &[&str]) -> Result<(String, String), CliError> {
        let invocation = Invocation {
            registry: &Registry::stock(),
            now: "2026-03-28T12:00:00Z".parse().unwrap(),
            environment: Environment::default(),
            file: Some(file.to_owned()),
        };
        let args = parse(words).unwrap_or_else(|error| panic!("{error}"));
        let (mut out, mut notes) = (Vec::new(), Vec::new());
        args.list(&invocation, &mut out, &mut notes)?;
        Ok((String::from_utf8(out).unwrap(), String::from_utf8(notes).unwrap()))
    }

    /// [`next_of`] two jobs and a disabled one.
    fn next(words: &[&str]) -> Result<(String, String), CliError> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("jobs.toml");
        std::fs::write(&file, FILE).unwrap();
        next_of(&file, words)
    }

    #[test]
    fn a_schedule_is_listed_as_json_without_a_job() {
        let (out, notes) = next(&[
            "--schedule",
            "30 2 * * *",
            "--timezone",
            "Europe/Berlin",
            "--after",
            "2026-03-28T00:00:00Z",
            "--until",
            "2026-03-31T00:00:00Z",
            "--format",
            "json",
        ])
        .unwrap();
        assert_eq!(
            out,
            "{\"job\":null,\"scheduled_at\":\"2026-03-28T01:30:00Z\"}\n\
             {\"job\":null,\"scheduled_at\":\"2026-03-29T01:00:00Z\"}\n\
             {\"job\":null,\"scheduled_at\":\"2026-03-30T00:30:00Z\"}\n"
        );
        assert_eq!(notes, "");
    }

    #[test]
    fn text_shows_utc_and_local_time_with_its_zone_and_what_the_clocks_do() {
        let (out, _) = next(&["billing", "--count", "2"]).unwrap();
        assert_eq!(
            out,
            "JOB      UTC                   LOCAL                                         CLOCKS\n\
             billing  2026-03-29T01:00:00Z  Sun 2026-03-29 03:00:00 +02:00 Europe/Berlin  clocks go forward from 02:00 to 03:00; its time does not exist on this day, so it fires when the clocks change\n\
             billing  2026-03-30T00:30:00Z  Mon 2026-03-30 02:30:00 +02:00 Europe/Berlin\n"
        );
        let (out, _) = next(&["--schedule", "every 1h", "--count", "1"]).unwrap();
        assert_eq!(
            out,
            "UTC                   LOCAL\n\
             2026-03-28T13:00:00Z  Sat 2026-03-28 13:00:00 +00:00 UTC\n"
        );
    }

    #[test]
    fn every_job_is_listed_by_itself_and_one_that_is_not_enabled_is_noted() {
        let (out, notes) = next(&["--count", "2", "--format", "json"]).unwrap();
        let jobs: Vec<&str> = out.lines().map(|line| line.split('"').nth(3).unwrap()).collect();
        assert_eq!(jobs, ["billing", "billing", "report", "report"]);
        assert_eq!(notes, "note: asleep does not fire: enabled = false\n");
    }

    #[test]
    fn ten_are_listed_unless_a_number_or_an_end_is_given() {
        let lines = |words: &[&str]| next(words).unwrap().0.lines().count();
        assert_eq!(lines(&["report", "--format", "json"]), 10);
        assert_eq!(lines(&["report", "--format", "json", "--until", "2026-03-29T12:00:00Z"]), 24);
        assert_eq!(lines(&["report", "--format", "json", "--until", "2026-03-29T12:00Z", "--count", "3"]), 3);
    }

    #[test]
    fn a_list_without_end_is_cut_and_says_so() {
        let (out, notes) =
            next(&["--schedule", "every 1s", "--until", "2026-06-28T12:00:00Z", "--format", "json"]).unwrap();
        assert_eq!(out.lines().count(), 100_000);
        assert_eq!(notes, "note: the first 100000 firings; there are more, see --count\n");
    }

    #[test]
    fn nothing_to_list_is_said() {
        let (out, notes) = next(&["--schedule", "at 2026-01-01T00:00:00Z"]).unwrap();
        assert_eq!(out, "");
        assert_eq!(notes, "note: no firing after 2026-03-28T12:00:00Z\n");
        let (out, notes) = next(&["billing", "--until", "2026-03-28T13:00:00Z"]).unwrap();
        assert_eq!(out, "");
        assert_eq!(
            notes,
            "note: no firing of billing after 2026-03-28T12:00:00Z until 2026-03-28T13:00:00Z\n"
        );
    }

    #[test]
    fn warnings_go_to_the_notes_and_not_between_the_lines() {
        let (out, notes) = next(&["--schedule", "*/45 * * * *", "--format", "json"]).unwrap();
        assert_eq!(out.lines().count(), 10);
        assert!(notes.starts_with("note: uneven step"), "{notes}");
    }

    #[test]
    fn what_cannot_be_listed_is_refused() {
        let unknown = next(&["bling"]).unwrap_err().to_string();
        assert_eq!(unknown, "there is no job \"bling\"; the file declares asleep, billing, report");
        for (schedule, word) in [
            ("0 0 31 2 *", "never fires"),
            ("H * * * *", "job's name"),
            ("every 5", "every:"),
            ("every 5M", "the units are"),
            ("every 1500ms", "whole seconds"),
            ("at noon", "with its zone"),
        ] {
            let error = next(&["--schedule", schedule]).unwrap_err().to_string();
            assert!(error.starts_with("--schedule: ") && error.contains(word), "{error}");
        }
        for words in [
            &["billing", "--schedule", "@daily"][..],
            &["--timezone", "Europe/Berlin"],
            &["--schedule", "@daily", "--timezone", "Berlin"],
            &["--after", "2026-03-28 12:00"],
            &["--after", "tomorrow"],
            &["--count", "0"],
        ] {
            assert_eq!(parse(words).expect_err("{words:?} is refused").exit_code(), 2);
        }
    }

    #[test]
    fn a_file_is_read_only_for_its_jobs() {
        let nowhere = Path::new("/nowhere/jobs.toml");
        let (out, _) =
            next_of(nowhere, &["--schedule", "@daily", "--count", "1", "--format", "json"]).unwrap();
        assert_eq!(out, "{\"job\":null,\"scheduled_at\":\"2026-03-29T00:00:00Z\"}\n");
        let refused = next_of(nowhere, &["billing"]).unwrap_err().to_string();
        assert!(refused.contains("/nowhere/jobs.toml"), "{refused}");
    }
}
