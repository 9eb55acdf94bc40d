//! The numbers the product gives out, in one place, under the names its users put into alerts.
//!
//! Labels are the job's name and a fixed word, never free text: their number is bounded by the file.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use metrics::{counter, gauge, histogram};

use crate::firing::JobName;

fn label(job: &JobName) -> String {
    job.to_string()
}

/// `runner_lock_acquire_total{job,outcome}`
pub(crate) fn lock_acquire(job: &JobName, outcome: &'static str) {
    counter!("runner_lock_acquire_total", "job" => label(job), "outcome" => outcome).increment(1);
}

/// What a lock leaves behind when its hold is over.
pub(crate) fn lock_released(job: &JobName, report: &lockcore::LeaseReport) {
    histogram!("runner_lock_hold_seconds", "job" => label(job)).record(report.held_for.as_secs_f64());
    counter!("runner_lock_renewals_total", "outcome" => "renewed").increment(u64::from(report.renewals_ok));
    counter!("runner_lock_renewals_total", "outcome" => "failed")
        .increment(u64::from(report.renewals_failed));
    if report.cap_reached {
        counter!("runner_lock_renewal_cap_reached_total", "job" => label(job)).increment(1);
    }
}

/// `runner_lock_release_mismatch_total{job}`
pub(crate) fn lock_release_mismatch(job: &JobName) {
    counter!("runner_lock_release_mismatch_total", "job" => label(job)).increment(1);
}

/// `runner_lock_lost_total{job,reason}`
pub(crate) fn lock_lost(job: &JobName, reason: &'static str) {
    counter!("runner_lock_lost_total", "job" => label(job), "reason" => reason).increment(1);
}

/// `runner_ledger_claims_total{job,outcome}`
pub(crate) fn claim(job: &JobName, outcome: &'static str) {
    counter!("runner_ledger_claims_total", "job" => label(job), "outcome" => outcome).increment(1);
}

/// `runner_ledger_duplicate_total{job,found}`: the second layer caught what the first let through.
pub(crate) fn duplicate(job: &JobName, found: &'static str) {
    counter!("runner_ledger_duplicate_total", "job" => label(job), "found" => found).increment(1);
}

/// `runner_firings_total{job,state,reason}`
pub(crate) fn firing_ended(job: &JobName, state: &'static str, reason: &'static str) {
    counter!("runner_firings_total", "job" => label(job), "state" => state, "reason" => reason).increment(1);
}

/// `runner_firing_lateness_seconds{job}`
pub(crate) fn lateness(job: &JobName, late: TimeDelta) {
    let seconds = late.to_std().unwrap_or_default().as_secs_f64();
    histogram!("runner_firing_lateness_seconds", "job" => label(job)).record(seconds);
}

/// `runner_run_duration_seconds{job}`
pub(crate) fn run_duration(job: &JobName, took: Duration) {
    histogram!("runner_run_duration_seconds", "job" => label(job)).record(took.as_secs_f64());
}

/// `runner_job_last_success_timestamp_seconds{job}`
pub(crate) fn last_success(job: &JobName, at: DateTime<Utc>) {
    gauge!("runner_job_last_success_timestamp_seconds", "job" => label(job)).set(seconds(at));
}

/// `runner_job_next_firing_timestamp_seconds{job}`
pub(crate) fn next_firing(job: &JobName, at: DateTime<Utc>) {
    gauge!("runner_job_next_firing_timestamp_seconds", "job" => label(job)).set(seconds(at));
}

/// `runner_job_missed_total{job}`
pub(crate) fn missed(job: &JobName) {
    counter!("runner_job_missed_total", "job" => label(job)).increment(1);
}

/// `runner_running`
pub(crate) fn running(change: f64) {
    gauge!("runner_running").increment(change);
}

/// `runner_stuck_runs`
pub(crate) fn stuck(change: f64) {
    gauge!("runner_stuck_runs").increment(change);
}

/// `runner_clock_offset_seconds`: this host's clock minus the ledger's.
pub(crate) fn clock_offset(offset: TimeDelta) {
    gauge!("runner_clock_offset_seconds").set(offset.as_seconds_f64());
}

/// `runner_heartbeat_missed_total`
pub(crate) fn heartbeat_missed() {
    counter!("runner_heartbeat_missed_total").increment(1);
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit a double for ages")]
fn seconds(at: DateTime<Utc>) -> f64 {
    at.timestamp_millis() as f64 / 1000.0
}
