//! Warnings: what is valid but probably a mistake.

use std::time::Duration;

use super::address::LedgerKind;
use super::diagnose::{Finding, Findings, KeyPath, Reported, Spot};
use super::section::Section;
use super::settings::{AdminSettings, JobSpec, LedgerSettings, LockSettings};
use crate::rules::Guard;
use crate::schedule::show_duration as show;

/// With a longer ttl, a firing whose owner is lost waits long for another owner.
const LONG_TTL: Duration = Duration::from_secs(60 * 60);

/// Warnings about one job, whose `rule` is one of `schedule`, `every` and `at`.
pub(crate) fn of_job(section: &Section<'_>, job: &JobSpec, rule: &str) {
    for warning in job.timetable.warnings() {
        section.warning(rule, warning);
    }
    if rule != "schedule" && section.has_itself("timezone") {
        section.warning("timezone", "timezone has no effect: only schedule is read in a time zone");
    }
    if job.guard == Guard::Ledger {
        for key in ["max_renewals", "on_unavailable"].into_iter().filter(|key| section.has_itself(key)) {
            section.warning(key, format!("{key} has no effect: a job with guard = \"ledger\" takes no lock"));
        }
    }
    if job.budget.ttl > LONG_TTL {
        let ttl = show(job.budget.ttl);
        section.warning(
            "ttl",
            format!("when the owner of a run is lost, another owner waits for the ttl, which is {ttl}"),
        );
    }
}

/// Warnings about what is served over HTTP.
pub(crate) fn of_admin(section: &Section<'_>, admin: &AdminSettings) {
    if !admin.listen.ip().to_canonical().is_loopback() {
        let message =
            "other hosts may reach this address, and whoever does can read the names and numbers of the jobs";
        section.warning("listen", message);
    }
}

/// Warnings about the two layers together.
pub(crate) fn of_layers(lock: &LockSettings, ledger: &LedgerSettings, findings: &Findings) {
    if lock.url.is_some() && LedgerKind::of(&ledger.url) == LedgerKind::Sqlite {
        let message = "a Redis lock with a SQLite ledger protects one host only: \
                       replicas on other hosts have ledgers of their own";
        let hint = Some("set ledger.url to a PostgreSQL address that all replicas share".to_owned());
        let path = KeyPath::of(["lock", "url"]);
        findings.warning(Finding { path, spot: Spot::Key, message: message.to_owned(), hint });
    }
}

/// Warnings about all jobs together.
pub(crate) fn of_jobs(jobs: &[Result<JobSpec, Reported>], findings: &Findings) {
    if jobs.iter().all(|job| job.as_ref().is_ok_and(|job| !job.enabled)) {
        let message = "no job is enabled: nothing will fire".to_owned();
        findings.warning(Finding { path: KeyPath::of(["jobs"]), spot: Spot::File, message, hint: None });
    }
}
