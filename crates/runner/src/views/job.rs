//! A job as the configuration declares it.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::config::{JobSpec, job_as_json};
use crate::firing::instant;

/// A job: every key of it, its next firings and the life of its lock. Durations are whole milliseconds.
///
/// The fields are in alphabetical order, as `runner check --format json` prints them. Those of the job's
/// keys come from the table of keys, so that none can be forgotten here.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct JobView(Map<String, Value>);

impl JobView {
    /// The job, with the firings that the caller wants to show as its `next` ones.
    pub(crate) fn new(job: &JobSpec, next: &[DateTime<Utc>]) -> Self {
        let next: Vec<String> = next.iter().copied().map(instant).collect();
        let lock_life = u64::try_from(job.budget.lock_life().as_millis()).unwrap_or(u64::MAX);
        let mut fields = job_as_json(job);
        for (name, value) in [
            ("job", json!(job.name.as_str())),
            ("lock_life_ms", json!(lock_life)),
            ("next", json!(next)),
            ("tzdata", json!(chrono_tz::IANA_TZDB_VERSION)),
        ] {
            fields.insert(name.to_owned(), value);
        }
        Self(fields)
    }
}
