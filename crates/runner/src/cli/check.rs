//! `runner check`: what a configuration means, without asking any server.

use std::io::{self, Write};

use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::Format;
use crate::config::{Config, JobSpec, LedgerKind, show_duration};
use crate::firing::instant;

/// Firings shown of each job.
const SHOWN: usize = 3;

/// What `runner check` is told.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct CheckArgs {
    /// How to print: one object per job and per warning as JSON.
    #[arg(long, value_enum, default_value_t)]
    format: Format,
}

/// Prints what `config`, which has been loaded and is therefore right, means at `now`.
///
/// # Errors
/// Whatever writing to `out` fails with.
pub(crate) fn run(
    args: &CheckArgs,
    config: &Config,
    now: DateTime<Utc>,
    out: &mut dyn Write,
) -> io::Result<()> {
    match args.format {
        Format::Text => text(config, now, out),
        Format::Json => json_lines(config, now, out),
    }
}

fn firings(job: &JobSpec, now: DateTime<Utc>) -> Vec<DateTime<Utc>> {
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
        write!(out, "  {}", one_line(description))?;
    }
    if !job.enabled {
        write!(out, "  (disabled: it does not fire)")?;
    }
    writeln!(out)?;
    writeln!(out, "  kind      {}", job.kind)?;
    writeln!(out, "  schedule  {} in {}", job.schedule_text, job.timezone.name())?;
    let mut label = "next";
    for firing in firings(job, now) {
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

/// Text of the file must not be able to break the layout, or to steer the terminal.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn json_lines(config: &Config, now: DateTime<Utc>, out: &mut dyn Write) -> io::Result<()> {
    for warning in &config.warnings {
        writeln!(out, "{}", json!({ "warning": warning.message(), "key": warning.key() }))?;
    }
    for job in &config.jobs {
        writeln!(out, "{}", as_json(job, now))?;
    }
    Ok(())
}

fn as_json(job: &JobSpec, now: DateTime<Utc>) -> Value {
    let next: Vec<String> = firings(job, now).into_iter().map(instant).collect();
    let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    json!({
        "job": job.name.as_str(),
        "description": job.description,
        "kind": job.kind,
        "schedule": job.schedule_text,
        "timezone": job.timezone.name(),
        "tzdata": chrono_tz::IANA_TZDB_VERSION,
        "enabled": job.enabled,
        "next": next,
        "ttl_ms": millis(job.budget.ttl),
        "max_renewals": job.budget.max_renewals,
        "lock_life_ms": millis(job.budget.lock_life()),
        "timeout_ms": millis(job.budget.timeout),
        "kill_grace_ms": millis(job.budget.kill_grace),
        "overlap": job.overlap.as_str(),
        "misfire": job.misfire.as_str(),
        "start_deadline_ms": millis(job.start_deadline),
        "delivery": job.delivery.as_str(),
        "max_attempts": job.max_attempts,
        "guard": job.guard.as_str(),
    })
}

#[cfg(test)]
mod tests {
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
        let config = Config::load(&path, &Environment::default(), &kinds as &dyn Kinds).expect("a good file");
        let now = "2026-03-28T00:00:00Z".parse().expect("an instant");
        let mut out = Vec::new();
        run(&CheckArgs { format }, &config, now, &mut out).expect("written");
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
    }
}
