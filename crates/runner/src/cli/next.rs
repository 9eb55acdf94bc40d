//! `runner next`: when jobs fire.

use std::io::{self, Write};

use chrono::{DateTime, NaiveDateTime, Utc};
use chrono_tz::Tz;
use clap::Args;
use serde::Serialize;

use super::Format;
use crate::config::JobSpec;
use crate::firing::{JobName, instant};
use crate::schedule::{ScheduleError, Timetable};

/// How many firings are listed when nobody says how many.
const DEFAULT_COUNT: usize = 10;
/// How many are listed when only `--until` bounds them.
const MOST: usize = 100_000;

/// When do jobs fire?
#[derive(Clone, Debug, Args)]
pub(crate) struct NextArgs {
    /// Only this job; all of them when left out
    #[arg(conflicts_with = "schedule")]
    pub(crate) job: Option<String>,

    /// How many firings of each job [default: 10, or all up to --until]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: Option<u32>,

    /// Firings after this instant, not at it [default: now]
    #[arg(long, value_name = "TIME", value_parser = read_instant)]
    pub(crate) after: Option<DateTime<Utc>>,

    /// Firings until this instant, or at it
    #[arg(long, value_name = "TIME", value_parser = read_instant)]
    pub(crate) until: Option<DateTime<Utc>>,

    /// A schedule instead of a job, without reading a file: a cron expression, `every 30s`, or `at TIME`
    #[arg(long, value_name = "EXPR")]
    pub(crate) schedule: Option<String>,

    /// The zone of --schedule
    #[arg(long, value_name = "ZONE", requires = "schedule", default_value = "UTC", value_parser = read_zone)]
    pub(crate) timezone: Tz,

    /// How to print
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: Format,
}

impl NextArgs {
    /// Whether the answer needs a configuration at all.
    #[must_use]
    pub(crate) const fn needs_jobs(&self) -> bool {
        self.schedule.is_none()
    }
}

/// What there is to know of a job here.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobForNext<'a> {
    /// Its name.
    pub(crate) name: &'a JobName,
    /// When it fires.
    pub(crate) timetable: &'a Timetable,
    /// The zone its firings are shown in.
    pub(crate) timezone: Tz,
    /// Whether it fires at all.
    pub(crate) enabled: bool,
}

impl<'a> From<&'a JobSpec> for JobForNext<'a> {
    fn from(job: &'a JobSpec) -> Self {
        Self { name: &job.name, timetable: &job.timetable, timezone: job.timezone, enabled: job.enabled }
    }
}

/// Why there is no list.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum NextError {
    /// No such job.
    #[error("there is no job {name:?}; the file has {}", if .known.is_empty() { "none".into() } else { .known.join(", ") })]
    UnknownJob {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// `--schedule` is none.
    #[error("--schedule: {0}")]
    Schedule(#[from] ScheduleError),
    /// Printing failed.
    #[error("cannot print")]
    Print(#[from] io::Error),
}

/// Prints the list to `out`, and to `notes` what is to be said about it. `now` is the default of
/// `--after`.
///
/// # Errors
/// [`NextError`] when the job or the schedule is none, or printing fails.
pub(crate) fn run(
    args: &NextArgs,
    jobs: &[JobForNext<'_>],
    now: DateTime<Utc>,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<(), NextError> {
    let after = args.after.unwrap_or(now);
    let mut list = List { format: args.format, rows: Vec::new(), out, notes };

    if let Some(text) = &args.schedule {
        let timetable = read_schedule(text, args.timezone)?;
        for warning in timetable.warnings() {
            writeln!(list.notes, "note: {warning}")?;
        }
        list.add(None, &timetable, args.timezone, after, args)?;
        return Ok(list.print()?);
    }

    let asked: Vec<&JobForNext<'_>> = match &args.job {
        Some(name) => jobs.iter().filter(|job| job.name.as_str() == name).collect(),
        None => jobs.iter().collect(),
    };
    if let (Some(name), true) = (&args.job, asked.is_empty()) {
        let known = jobs.iter().map(|job| job.name.to_string()).collect();
        return Err(NextError::UnknownJob { name: name.clone(), known });
    }
    for job in asked {
        if job.enabled {
            list.add(Some(job.name), job.timetable, job.timezone, after, args)?;
        } else {
            writeln!(list.notes, "note: {} does not fire: enabled = false", job.name)?;
        }
    }
    Ok(list.print()?)
}

#[derive(Serialize)]
struct Line<'a> {
    job: Option<&'a str>,
    scheduled_at: String,
}

/// The list: JSON as it comes, text when all of it is known, to align it.
struct List<'a> {
    format: Format,
    rows: Vec<[String; 4]>,
    out: &'a mut dyn Write,
    notes: &'a mut dyn Write,
}

impl List<'_> {
    fn add(
        &mut self,
        job: Option<&JobName>,
        timetable: &Timetable,
        zone: Tz,
        after: DateTime<Utc>,
        args: &NextArgs,
    ) -> io::Result<()> {
        let until = args.until.unwrap_or(DateTime::<Utc>::MAX_UTC);
        let count = match (args.count, args.until) {
            (Some(count), _) => usize::try_from(count).unwrap_or(usize::MAX),
            (None, None) => DEFAULT_COUNT,
            (None, Some(_)) => MOST,
        };
        let of_job = job.map(|job| format!(" of {job}")).unwrap_or_default();
        let mut firings = timetable.between(after, until);
        let mut listed = 0;
        for firing in firings.by_ref().take(count) {
            listed += 1;
            match self.format {
                Format::Json => {
                    let line = Line { job: job.map(JobName::as_str), scheduled_at: instant(firing) };
                    serde_json::to_writer(&mut *self.out, &line)?;
                    writeln!(self.out)?;
                }
                Format::Text => self.rows.push([
                    job.map(JobName::to_string).unwrap_or_default(),
                    instant(firing),
                    format!("{} {zone}", firing.with_timezone(&zone).format("%a %Y-%m-%d %H:%M:%S %:z")),
                    timetable.dst_note(firing, zone).map(|note| note.to_string()).unwrap_or_default(),
                ]),
            }
        }
        if listed == 0 {
            let until = args.until.map(|until| format!(" until {}", instant(until))).unwrap_or_default();
            writeln!(self.notes, "note: no firing{of_job} after {}{until}", instant(after))?;
        }
        if args.count.is_none() && listed == MOST && firings.next().is_some() {
            writeln!(self.notes, "note: the first {MOST} firings{of_job}; there are more, see --count")?;
        }
        Ok(())
    }

    fn print(self) -> io::Result<()> {
        if !self.rows.is_empty() {
            let titles = ["JOB", "UTC", "LOCAL", "CLOCKS"].map(str::to_owned);
            let table = || std::iter::once(&titles).chain(&self.rows);
            let mut widths = [0; 4];
            for (column, width) in widths.iter_mut().enumerate() {
                // A column in which nothing is said is left out.
                if self.rows.iter().any(|row| !row[column].is_empty()) {
                    *width = table().map(|row| row[column].len()).max().unwrap_or(0);
                }
            }
            for row in table() {
                let cells = row.iter().zip(widths).filter(|(_, width)| *width > 0);
                let line: Vec<String> = cells.map(|(cell, width)| format!("{cell:width$}")).collect();
                writeln!(self.out, "{}", line.join("  ").trim_end())?;
            }
        }
        self.out.flush()
    }
}

/// The rule as `check` prints it: a cron expression, `every 30s`, or `at 2026-06-01T00:00:00Z`.
fn read_schedule(text: &str, zone: Tz) -> Result<Timetable, ScheduleError> {
    let refuse = |error: String| ScheduleError { message: error };
    if let Some(period) = text.strip_prefix("every ") {
        let period = humantime::parse_duration(period.trim());
        return Timetable::every(period.map_err(|error| refuse(format!("every: {error}")))?);
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
mod tests;
