//! What works but is probably not what was meant.

use std::time::Duration;

use super::address::LedgerKind;
use super::duration::show;
use super::findings::{Finding, Findings, Reported, Spot};
use super::key_path::KeyPath;
use super::policy::Guard;
use super::section::Section;
use super::settings::{JobSpec, LedgerSettings, LockSettings};

/// A ttl above this makes a firing wait long for another owner when its own vanished.
const LONG_TTL: Duration = Duration::from_secs(60 * 60);

/// Cautions about one job.
pub(crate) fn of_job(section: &Section<'_>, job: &JobSpec, is_cron: bool) {
    if is_cron {
        of_cron(section, &job.schedule_text);
    } else if section.has_itself("timezone") {
        section.warning("timezone", "the zone has no effect: only cron schedules are read in one");
    }
    if job.guard == Guard::Ledger {
        for key in ["max_renewals", "on_unavailable"].into_iter().filter(|key| section.has_itself(key)) {
            section.warning(key, format!("{key} has no effect: guard = \"ledger\" takes no lock"));
        }
    }
    if job.budget.ttl > LONG_TTL {
        let ttl = show(job.budget.ttl);
        section.warning("ttl", format!("when the owner of a run vanishes, another waits for the ttl: {ttl}"));
    }
}

fn of_cron(section: &Section<'_>, schedule: &str) {
    let fields: Vec<&str> = schedule.split_whitespace().collect();
    // Seconds come first, but only where there are six fields.
    let spans = match fields.len() {
        5 => &[("minute", 60), ("hour", 24)][..],
        6 => &[("second", 60), ("minute", 60), ("hour", 24)][..],
        _ => return,
    };
    if let [("second", _), ..] = spans
        && matches!(fields.first(), Some(&("*" | "*/1")))
    {
        section.warning("schedule", "of six fields the first is the second: this fires every second");
    }
    for ((unit, span), field) in spans.iter().zip(fields) {
        let Some(step) = field.strip_prefix("*/").and_then(|step| step.parse::<u32>().ok()) else { continue };
        if step > 0 && step < *span && span % step != 0 {
            let last = (span - 1) / step * step;
            section.warning(
                "schedule",
                format!(
                    "{field} is not every {step} {unit}s: it starts again after {unit} {last}, {} later",
                    span - last
                ),
            );
        }
    }
}

/// Cautions about how the two layers go together.
pub(crate) fn of_layers(lock: &LockSettings, ledger: &LedgerSettings, findings: &Findings) {
    if lock.url.is_some() && LedgerKind::of(&ledger.url) == LedgerKind::Sqlite {
        let message = "a Redis lock with a SQLite ledger protects one host only: \
                       replicas on other hosts have ledgers of their own";
        let hint = Some("set ledger.url to a PostgreSQL address that all replicas share".to_owned());
        let path = KeyPath::of(["lock", "url"]);
        findings.warning(Finding { path, spot: Spot::Key, message: message.to_owned(), hint });
    }
}

/// Cautions about the jobs as a whole.
pub(crate) fn of_jobs(jobs: &[Result<JobSpec, Reported>], findings: &Findings) {
    if jobs.iter().all(|job| job.as_ref().is_ok_and(|job| !job.enabled)) {
        let message = "no job is enabled: nothing will fire".to_owned();
        findings.warning(Finding { path: KeyPath::of(["jobs"]), spot: Spot::File, message, hint: None });
    }
}
