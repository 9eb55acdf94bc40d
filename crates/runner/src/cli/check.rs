//! `runner check`: what a configuration means, without connecting to a server.

use std::io::{self, Write};

use chrono::{DateTime, Utc};

use super::error::CliError;
use super::format::{Format, print_json};
use super::invocation::Invocation;
use super::table::legible;
use crate::config::{Config, JobSpec, LedgerKind, show_duration};
use crate::firing::instant;
use crate::views::{JobView, WarningView};

/// How many firings of each job are shown.
const SHOWN: usize = 3;

/// Checks the configuration without connecting to a server, and shows each job with its next firings
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct CheckArgs {
    /// How to print; as JSON, one object for each warning and each job
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

impl CheckArgs {
    pub(super) fn run(&self, invocation: &Invocation<'_>) -> Result<(), CliError> {
        let config = invocation.config()?;
        // A kind may refuse its params only when it makes the job. A replica would fail then, so `check` must.
        invocation.registry.bind(&config)?;
        Ok(self.print(&config, invocation.now, &mut io::stdout())?)
    }

    /// Prints what `config`, which has no problems, means at `now`.
    fn print(&self, config: &Config, now: DateTime<Utc>, out: &mut dyn Write) -> io::Result<()> {
        match self.format {
            Format::Text => text(config, now, out),
            Format::Json => {
                print_json(config.warnings.iter().map(WarningView::from), out)?;
                print_json(config.jobs.iter().map(|job| JobView::new(job, &next_firings(job, now))), out)
            }
        }
    }
}

fn next_firings(job: &JobSpec, now: DateTime<Utc>) -> Vec<DateTime<Utc>> {
    std::iter::successors(job.timetable.next(now), |last| job.timetable.next(*last)).take(SHOWN).collect()
}

fn text(config: &Config, now: DateTime<Utc>, out: &mut dyn Write) -> io::Result<()> {
    for warning in &config.warnings {
        writeln!(out, "{warning}")?;
    }
    for job in &config.jobs {
        describe(job, now, out)?;
        writeln!(out)?;
    }
    let jobs = counted(config.jobs.len(), "job");
    let warnings = counted(config.warnings.len(), "warning");
    let lock = if config.lock.url.is_some() { "Redis" } else { "this process only" };
    let ledger = match config.ledger.kind() {
        LedgerKind::Postgres => "PostgreSQL",
        LedgerKind::Sqlite => "SQLite",
    };
    writeln!(out, "{} is fine: {jobs}, {warnings}", config.source.file())?;
    writeln!(out, "lock: {lock} · ledger: {ledger} · time zones: {}", chrono_tz::IANA_TZDB_VERSION)
}

fn describe(job: &JobSpec, now: DateTime<Utc>, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{}", job.name)?;
    if let Some(description) = &job.description {
        write!(out, "  {}", legible(description))?;
    }
    if !job.enabled {
        write!(out, "  (disabled: it does not fire)")?;
    }
    writeln!(out)?;
    writeln!(out, "  kind      {}", job.kind)?;
    writeln!(out, "  schedule  {} in {}", job.schedule_text, job.timezone.name())?;
    let mut label = "next";
    for firing in next_firings(job, now) {
        let local = firing.with_timezone(&job.timezone).format("%a %Y-%m-%d %H:%M:%S %Z");
        writeln!(out, "  {label:<8}  {}  {local}", instant(firing))?;
        label = "";
    }
    if label == "next" {
        writeln!(out, "  next      never")?;
    }
    let budget = job.budget;
    let renewals = match budget.max_renewals {
        0 => "never renewed".to_owned(),
        most => {
            format!(
                "renewed every {} at most {}",
                show_duration(budget.ttl / 3),
                counted(most as usize, "time")
            )
        }
    };
    writeln!(
        out,
        "  budget    ttl {}, {renewals} · lock life {} · timeout {} · kill_grace {}",
        show_duration(budget.ttl),
        show_duration(budget.lock_life()),
        show_duration(budget.timeout),
        show_duration(budget.kill_grace),
    )?;
    writeln!(
        out,
        "  policy    overlap {} · misfire {} · start_deadline {} · {} · {} · guard {}",
        job.overlap,
        job.misfire,
        show_duration(job.start_deadline),
        job.delivery,
        counted(job.max_attempts as usize, "attempt"),
        job.guard,
    )
}

fn counted(count: usize, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::config::{Environment, Kinds};

    const FILE: &str = r#"
        [jobs.morning]
        description = "wake up\nall of them"
        schedule = "30 2 * * *"
        timezone = "Europe/Berlin"
        kind = "command"
        timeout = "1m"

        [jobs.once]
        at = 2020-01-01T00:00:00Z
        kind = "command"
        params = { argv = ["S3CRET"] }
        enabled = false
    "#;

    fn checked(format: Format) -> String {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("jobs.toml");
        std::fs::write(&path, FILE).expect("written");
        let kinds: &[&str] = &["command"];
        let config = Config::load(&path, &Environment::default(), &kinds as &dyn Kinds, &|_| Ok(()))
            .expect("a good file");
        let now = "2026-03-28T00:00:00Z".parse().expect("an instant");
        let mut out = Vec::new();
        CheckArgs { format }.print(&config, now, &mut out).expect("written");
        String::from_utf8(out).expect("text").replace(&path.display().to_string(), "jobs.toml")
    }

    #[test]
    fn people_see_firings_in_both_times_and_the_budget() {
        let text = checked(Format::Text);
        for line in [
            "morning  wake up all of them",
            "  schedule  30 2 * * * in Europe/Berlin",
            "  next      2026-03-28T01:30:00Z  Sat 2026-03-28 02:30:00 CET",
            "            2026-03-29T01:00:00Z  Sun 2026-03-29 03:00:00 CEST",
            "  budget    ttl 30s, renewed every 10s at most 4 times · lock life 1m 10s · timeout 1m · kill_grace 5s",
            "once  (disabled: it does not fire)",
            "  next      never",
            "jobs.toml is fine: 2 jobs, 0 warnings",
        ] {
            assert!(text.lines().any(|found| found == line), "no line {line:?} in\n{text}");
        }
        assert!(text.contains(chrono_tz::IANA_TZDB_VERSION), "{text}");
        assert!(!text.contains("S3CRET"), "{text}");
    }

    #[test]
    fn programs_get_one_object_per_job() {
        let text = checked(Format::Json);
        let jobs: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(jobs.len(), 2);
        assert_eq!(jobs[0]["job"], "morning");
        let next = json!(["2026-03-28T01:30:00Z", "2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
        assert_eq!(jobs[0]["next"], next);
        assert_eq!(jobs[0]["timeout_ms"], 60_000);
        assert_eq!(jobs[0]["lock_life_ms"], 70_000);
        assert_eq!(jobs[1]["next"], json!([]));
        let first = concat!(
            r#"{"backoff":{"factor":2.0,"initial_ms":1000,"max_ms":300000},"delivery":"at_least_once","#,
            r#""description":"wake up\nall of them","enabled":true,"guard":"both","jitter_ms":0,"#,
            r#""job":"morning","kill_grace_ms":5000,"kind":"command","lock_life_ms":70000,"max_attempts":1,"#,
            r#""max_catchup":100,"max_crashes":3,"max_renewals":4,"misfire":"latest","#,
            r#""next":["2026-03-28T01:30:00Z","2026-03-29T01:00:00Z","2026-03-30T00:30:00Z"],"#,
            r#""on_unavailable":"ledger_only","overlap":"skip","schedule":"30 2 * * *","shards":1,"#,
            r#""start_deadline_ms":600000,"timeout_ms":60000,"#,
            r#""timezone":"Europe/Berlin","ttl_ms":30000,"tzdata":"TZDATA"}"#,
        );
        let first = first.replace("TZDATA", chrono_tz::IANA_TZDB_VERSION);
        assert_eq!(text.lines().next(), Some(first.as_str()));
        assert!(!text.contains("S3CRET"), "{text}");
    }
}
