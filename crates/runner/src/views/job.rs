//! A job as the configuration declares it.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::config::JobSpec;
use crate::firing::instant;

/// A job, its next firings and its budget. Durations are whole milliseconds.
///
/// The fields are in alphabetical order, as `runner check --format json` prints them.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JobView<'j> {
    delivery: &'static str,
    description: Option<&'j str>,
    enabled: bool,
    guard: &'static str,
    job: &'j str,
    kill_grace_ms: u64,
    kind: &'j str,
    lock_life_ms: u64,
    max_attempts: u32,
    max_renewals: u32,
    misfire: &'static str,
    next: Vec<String>,
    overlap: &'static str,
    schedule: &'j str,
    start_deadline_ms: u64,
    timeout_ms: u64,
    timezone: &'static str,
    ttl_ms: u64,
    tzdata: &'static str,
}

impl<'j> JobView<'j> {
    /// The job, with the firings that the caller wants to show as its `next` ones.
    pub(crate) fn new(job: &'j JobSpec, next: &[DateTime<Utc>]) -> Self {
        let budget = job.budget;
        Self {
            delivery: job.delivery.as_str(),
            description: job.description.as_deref(),
            enabled: job.enabled,
            guard: job.guard.as_str(),
            job: job.name.as_str(),
            kill_grace_ms: millis(budget.kill_grace),
            kind: &job.kind,
            lock_life_ms: millis(budget.lock_life()),
            max_attempts: job.max_attempts,
            max_renewals: budget.max_renewals,
            misfire: job.misfire.as_str(),
            next: next.iter().copied().map(instant).collect(),
            overlap: job.overlap.as_str(),
            schedule: &job.schedule_text,
            start_deadline_ms: millis(job.start_deadline),
            timeout_ms: millis(budget.timeout),
            timezone: job.timezone.name(),
            ttl_ms: millis(budget.ttl),
            tzdata: chrono_tz::IANA_TZDB_VERSION,
        }
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
