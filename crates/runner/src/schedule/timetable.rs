//! The pure function from a declared schedule to instants.

use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use crate::firing::JobName;

/// When a job fires: the same list on every replica, whenever it is asked and wherever it runs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Timetable {}

/// A schedule that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ScheduleError {
    /// What is wrong, and what would do.
    pub message: String,
}

impl Timetable {
    /// A cron schedule; `job` seeds `H`.
    ///
    /// # Errors
    /// [`ScheduleError`] when it is no cron expression or never fires.
    pub fn cron(_expr: &str, _zone: Tz, _job: Option<&JobName>) -> Result<Self, ScheduleError> {
        Ok(Self {})
    }

    /// Every multiple of `period` since the Unix epoch.
    ///
    /// # Errors
    /// [`ScheduleError`] when the period is not a whole number of seconds, or zero.
    pub fn every(_period: Duration) -> Result<Self, ScheduleError> {
        Ok(Self {})
    }

    /// Once.
    ///
    /// # Errors
    /// [`ScheduleError`] when the instant is not a whole second.
    pub fn at(_instant: DateTime<Utc>) -> Result<Self, ScheduleError> {
        Ok(Self {})
    }

    /// The first instant after `after` (exclusive); `None` if there is none. Stateless.
    #[must_use]
    pub fn next(&self, _after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        None
    }
}
