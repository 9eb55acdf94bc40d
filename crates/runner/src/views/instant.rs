//! An instant at which a schedule fires.

use chrono::{DateTime, Utc};
use serde::Serialize;

use crate::firing::{JobName, instant};

/// One firing of a schedule that has no row yet.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct InstantView<'j> {
    /// `null` for a schedule that belongs to no job.
    job: Option<&'j str>,
    scheduled_at: String,
}

impl<'j> InstantView<'j> {
    /// The firing of `job` at `scheduled_at`.
    pub(crate) fn new(job: Option<&'j JobName>, scheduled_at: DateTime<Utc>) -> Self {
        Self { job: job.map(JobName::as_str), scheduled_at: instant(scheduled_at) }
    }
}
