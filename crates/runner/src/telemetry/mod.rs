//! The numbers the product gives out, in one place, under the names its users put into alerts.
//!
//! Labels are the job's name and a word from the lists below, never free text: how many series there
//! are is bounded by the file.

mod answers;

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};

pub(crate) use answers::{ClaimAnswer, LockAnswer, LockLoss, RenewalAnswer, SecondRun};

use crate::firing::{JobName, Reason, State, Vocabulary as _};

const LOCK_ACQUIRE: &str = "runner_lock_acquire_total";
const LOCK_HOLD: &str = "runner_lock_hold_seconds";
const LOCK_MISMATCH: &str = "runner_lock_release_mismatch_total";
const LOCK_RENEWALS: &str = "runner_lock_renewals_total";
const LOCK_CAP: &str = "runner_lock_renewal_cap_reached_total";
const LOCK_LOST: &str = "runner_lock_lost_total";
const CLAIMS: &str = "runner_ledger_claims_total";
const FENCED: &str = "runner_ledger_fenced_total";
const FAILOVERS: &str = "runner_ledger_failovers_total";
const DUPLICATE: &str = "runner_ledger_duplicate_total";
const FIRINGS: &str = "runner_firings_total";
const LATENESS: &str = "runner_firing_lateness_seconds";
const RUN_DURATION: &str = "runner_run_duration_seconds";
const LAST_SUCCESS: &str = "runner_job_last_success_timestamp_seconds";
const NEXT_FIRING: &str = "runner_job_next_firing_timestamp_seconds";
const MISSED: &str = "runner_job_missed_total";
const RUNNING: &str = "runner_running";
const STUCK: &str = "runner_stuck_runs";
const CLOCK_OFFSET: &str = "runner_clock_offset_seconds";
const CLOCK_STEPS: &str = "runner_clock_steps_total";
const HEARTBEAT_MISSED: &str = "runner_heartbeat_missed_total";
const LOG_LINES_LOST: &str = "runner_log_lines_lost_total";

/// Where a firing goes, and why.
const ENDINGS: [(State, Option<Reason>); 19] = [
    (State::Succeeded, None),
    (State::Failed, Some(Reason::Error)),
    (State::Failed, Some(Reason::Panicked)),
    (State::Failed, Some(Reason::Timeout)),
    (State::Failed, Some(Reason::CrashLoop)),
    (State::Failed, Some(Reason::Expired)),
    (State::Lost, Some(Reason::OwnerLost)),
    (State::Lost, Some(Reason::LockLost)),
    (State::Lost, Some(Reason::LeaseLost)),
    (State::Lost, Some(Reason::RenewalCap)),
    (State::Lost, Some(Reason::Drain)),
    (State::Cancelled, Some(Reason::Requested)),
    (State::Skipped, Some(Reason::Missed)),
    (State::Skipped, Some(Reason::Overlap)),
    (State::Skipped, Some(Reason::Paused)),
    (State::Skipped, Some(Reason::LockUnavailable)),
    (State::Queued, Some(Reason::Retry)),
    (State::Queued, Some(Reason::Interrupted)),
    (State::Queued, Some(Reason::OwnerLost)),
];
/// Stands for an end that the list does not have.
const OTHER: &str = "other";

/// The upper bounds of each histogram's buckets, in seconds.
pub(crate) const BUCKETS: [(&str, &[f64]); 3] = [
    (LATENESS, &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 30.0, 120.0, 600.0]),
    (LOCK_HOLD, &SPANS),
    (RUN_DURATION, &SPANS),
];
const SPANS: [f64; 12] = [0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0];

/// Says what each number means, and begins every counter at zero: a counter that only appears with
/// its first event shows no increase by it, so an alert on the increase would sleep through it.
///
/// Call it once the process has its recorder; without one it does nothing, as does all the rest.
pub(crate) fn begin<'a>(jobs: impl IntoIterator<Item = &'a JobName>) {
    describe();
    for outcome in RenewalAnswer::ALL {
        counter!(LOCK_RENEWALS, "outcome" => outcome.as_str()).increment(0);
    }
    for name in [HEARTBEAT_MISSED, FAILOVERS, LOG_LINES_LOST, CLOCK_STEPS] {
        counter!(name).increment(0);
    }
    gauge!(RUNNING).increment(0.0);
    gauge!(STUCK).increment(0.0);
    for job in jobs {
        for outcome in LockAnswer::ALL {
            counter!(LOCK_ACQUIRE, "job" => label(job), "outcome" => outcome.as_str()).increment(0);
        }
        for reason in LockLoss::ALL {
            counter!(LOCK_LOST, "job" => label(job), "reason" => reason.as_str()).increment(0);
        }
        for outcome in ClaimAnswer::ALL {
            counter!(CLAIMS, "job" => label(job), "outcome" => outcome.as_str()).increment(0);
        }
        for found in SecondRun::ALL {
            counter!(DUPLICATE, "job" => label(job), "found" => found.as_str()).increment(0);
        }
        for (state, reason) in ENDINGS {
            counter!(FIRINGS, "job" => label(job), "state" => state.as_str(), "reason" => reason_label(state, reason))
                .increment(0);
        }
        for name in [LOCK_MISMATCH, LOCK_CAP, FENCED, MISSED] {
            counter!(name, "job" => label(job)).increment(0);
        }
        for (name, _) in BUCKETS {
            drop(histogram!(name, "job" => label(job)));
        }
    }
}

fn describe() {
    describe_counter!(LOCK_ACQUIRE, "Answers to taking a job's lock.");
    describe_histogram!(LOCK_HOLD, "How long a job's lock was held.");
    describe_counter!(LOCK_MISMATCH, "Locks that were gone or someone else's when they were released.");
    describe_counter!(LOCK_RENEWALS, "Answers to renewing a lock.");
    describe_counter!(LOCK_CAP, "Locks that were renewed as often as they may be.");
    describe_counter!(LOCK_LOST, "Locks that could no longer be relied on while a run needed them.");
    describe_counter!(CLAIMS, "Answers of the ledger to the claim of a firing.");
    describe_counter!(FAILOVERS, "Times that another server took the ledger over.");
    describe_counter!(DUPLICATE, "Second runs that the lock let through and the ledger refused.");
    describe_counter!(
        FENCED,
        "Results that the ledger refused, because another replica had taken the run over."
    );
    describe_counter!(FIRINGS, "Firings that this replica ended, skipped or sent back into the queue.");
    describe_histogram!(LATENESS, "From the moment a firing was due to the start of its first run.");
    describe_histogram!(RUN_DURATION, "How long a run took, however it ended.");
    describe_gauge!(LAST_SUCCESS, "When this replica last ran the job with success, in Unix time.");
    describe_gauge!(NEXT_FIRING, "When the job is due next, in Unix time.");
    describe_counter!(MISSED, "Firings that nobody ran in time, so that they were skipped.");
    describe_gauge!(RUNNING, "Runs on this replica now.");
    describe_gauge!(STUCK, "Runs that ignore their cancellation.");
    describe_gauge!(CLOCK_OFFSET, "This host's clock minus the ledger's.");
    describe_counter!(
        CLOCK_STEPS,
        "Times that the ledger's clock was set, forward or back, by more than a second."
    );
    describe_counter!(HEARTBEAT_MISSED, "Ticks that did not come, so that the planner ticked for itself.");
    describe_counter!(LOG_LINES_LOST, "Log lines that nobody read in time, or that could not be written.");
}

/// Counts an answer to taking a lock.
pub(crate) fn lock_acquire(job: &JobName, outcome: LockAnswer) {
    counter!(LOCK_ACQUIRE, "job" => label(job), "outcome" => outcome.as_str()).increment(1);
}

/// Counts answers to renewing locks.
pub(crate) fn lock_renewals(outcome: RenewalAnswer, count: u32) {
    counter!(LOCK_RENEWALS, "outcome" => outcome.as_str()).increment(u64::from(count));
}

/// Counts what a lock leaves behind when its hold is over.
pub(crate) fn lock_released(job: &JobName, report: &lockcore::LeaseReport) {
    histogram!(LOCK_HOLD, "job" => label(job)).record(report.held_for.as_secs_f64());
    if report.cap_reached {
        counter!(LOCK_CAP, "job" => label(job)).increment(1);
    }
}

/// Counts a lock that was not ours any more at its release.
pub(crate) fn lock_release_mismatch(job: &JobName) {
    counter!(LOCK_MISMATCH, "job" => label(job)).increment(1);
}

/// Counts a lock that a run can no longer rely on.
pub(crate) fn lock_lost(job: &JobName, reason: LockLoss) {
    counter!(LOCK_LOST, "job" => label(job), "reason" => reason.as_str()).increment(1);
}

/// Counts an answer to a claim.
pub(crate) fn claim(job: &JobName, outcome: ClaimAnswer) {
    counter!(CLAIMS, "job" => label(job), "outcome" => outcome.as_str()).increment(1);
}

/// Counts a ledger's clock that was set.
pub(crate) fn clock_stepped() {
    counter!(CLOCK_STEPS).increment(1);
}

/// Counts lost log lines; `all` is how many there were since the process began.
pub(crate) fn log_lines_lost(all: u64) {
    counter!(LOG_LINES_LOST).absolute(all);
}

/// Counts a server that took the ledger over from another.
pub(crate) fn ledger_failover() {
    counter!(FAILOVERS).increment(1);
}

/// Counts what the second layer caught after the first had let it through.
pub(crate) fn duplicate(job: &JobName, found: SecondRun) {
    counter!(DUPLICATE, "job" => label(job), "found" => found.as_str()).increment(1);
}

/// Counts a result that came after a takeover.
pub(crate) fn fenced(job: &JobName) {
    counter!(FENCED, "job" => label(job)).increment(1);
}

/// Counts a firing by where it went and why.
pub(crate) fn firing(job: &JobName, state: State, reason: Option<Reason>) {
    let label_of_reason = reason_label(state, reason);
    counter!(FIRINGS, "job" => label(job), "state" => state.as_str(), "reason" => label_of_reason)
        .increment(1);
    if reason == Some(Reason::Missed) {
        counter!(MISSED, "job" => label(job)).increment(1);
    }
}

/// The word for the end of a firing; `other` for one that the list does not have, so that the number of
/// series stays what it is.
fn reason_label(state: State, reason: Option<Reason>) -> &'static str {
    // A row that was cancelled has no reason of its own.
    let reason = if state == State::Cancelled { Some(Reason::Requested) } else { reason };
    if ENDINGS.contains(&(state, reason)) { reason.map_or("", Reason::as_str) } else { OTHER }
}

/// Records how late a firing's first run began.
pub(crate) fn lateness(job: &JobName, late: TimeDelta) {
    let seconds = late.to_std().unwrap_or_default().as_secs_f64();
    histogram!(LATENESS, "job" => label(job)).record(seconds);
}

/// Records how long a run took.
pub(crate) fn run_duration(job: &JobName, took: Duration) {
    histogram!(RUN_DURATION, "job" => label(job)).record(took.as_secs_f64());
}

/// Notes when a job last succeeded here.
pub(crate) fn last_success(job: &JobName, at: DateTime<Utc>) {
    gauge!(LAST_SUCCESS, "job" => label(job)).set(seconds(at));
}

/// Notes when a job is due next.
pub(crate) fn next_firing(job: &JobName, at: DateTime<Utc>) {
    gauge!(NEXT_FIRING, "job" => label(job)).set(seconds(at));
}

/// A run, counted for as long as the value lives.
pub(crate) fn running() -> GaugeGuard {
    GaugeGuard::among(RUNNING)
}

/// A run that ignores its cancellation, counted for as long as the value lives.
pub(crate) fn stuck() -> GaugeGuard {
    GaugeGuard::among(STUCK)
}

/// Something that is counted until dropped, whatever ends it.
#[derive(Debug)]
#[must_use = "it is counted only while it lives"]
pub(crate) struct GaugeGuard(&'static str);

impl GaugeGuard {
    fn among(name: &'static str) -> Self {
        gauge!(name).increment(1.0);
        Self(name)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        gauge!(self.0).decrement(1.0);
    }
}

/// Notes how far this host's clock is off.
pub(crate) fn clock_offset(offset: TimeDelta) {
    gauge!(CLOCK_OFFSET).set(offset.as_seconds_f64());
}

/// Counts a tick of the planner that did not come.
pub(crate) fn tick_missed() {
    counter!(HEARTBEAT_MISSED).increment(1);
}

fn label(job: &JobName) -> String {
    job.to_string()
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit a double for ages")]
fn seconds(at: DateTime<Utc>) -> f64 {
    at.timestamp_millis() as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use metrics_exporter_prometheus::PrometheusBuilder;

    use super::*;

    fn job(number: usize) -> JobName {
        JobName::new(&format!("job-{number}")).unwrap()
    }

    /// How many lines of the page carry a value, after `work` on an empty one.
    fn series(work: impl FnOnce()) -> (usize, String) {
        let recorder = PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, work);
        let page = recorder.handle().render();
        (page.lines().filter(|line| !line.is_empty() && !line.starts_with('#')).count(), page)
    }

    /// Everything that can happen to a job, and an end that the list does not have.
    fn live(job: &JobName) {
        LockAnswer::ALL.iter().for_each(|answer| lock_acquire(job, *answer));
        LockLoss::ALL.iter().for_each(|loss| lock_lost(job, *loss));
        ClaimAnswer::ALL.iter().for_each(|answer| claim(job, *answer));
        SecondRun::ALL.iter().for_each(|found| duplicate(job, *found));
        RenewalAnswer::ALL.iter().for_each(|answer| lock_renewals(*answer, 1));
        for (state, reason) in ENDINGS {
            firing(job, state, reason);
        }
        firing(job, State::Failed, Some(Reason::Drain));
        lock_release_mismatch(job);
        fenced(job);
        lateness(job, TimeDelta::seconds(1));
        run_duration(job, Duration::from_secs(1));
        last_success(job, DateTime::UNIX_EPOCH);
        next_firing(job, DateTime::UNIX_EPOCH);
        tick_missed();
        ledger_failover();
        clock_offset(TimeDelta::zero());
        drop((running(), stuck()));
    }

    #[test]
    fn the_number_of_series_grows_with_the_jobs_and_with_nothing_that_happens() {
        let jobs: Vec<JobName> = (0..1_000).map(job).collect();
        let (one, _) = series(|| begin(&jobs[..1]));
        let (two, _) = series(|| begin(&jobs[..2]));
        let (thousand, _) = series(|| begin(&jobs));
        assert_eq!(thousand - one, 999 * (two - one));
        let (once, _) = series(|| {
            begin(&jobs[..1]);
            live(&jobs[0]);
        });
        let (often, page) = series(|| {
            begin(&jobs[..1]);
            for _ in 0..50 {
                live(&jobs[0]);
            }
        });
        assert_eq!(once, often);
        assert!(page.contains("reason=\"other\"") && page.contains("reason=\"requested\""), "{page}");
    }

    #[test]
    fn a_run_is_counted_until_its_guard_is_gone_and_a_missed_firing_under_both_names() {
        let (_, page) = series(|| {
            drop(running());
            // It outlives the page.
            std::mem::forget(running());
            firing(&job(1), State::Skipped, Some(Reason::Missed));
            firing(&job(1), State::Skipped, Some(Reason::Overlap));
        });
        assert!(page.contains("\nrunner_running 1\n"), "{page}");
        assert!(page.contains("runner_job_missed_total{job=\"job-1\"} 1\n"), "{page}");
    }
}
