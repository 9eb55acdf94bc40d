//! The timetable: the pure function from a schedule to instants.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::ScheduleError;
use super::clocks::DstNote;
use super::cron::Cron;
use super::every::Every;
use crate::firing::{JobName, instant};

/// When a job fires: the same instants on every replica, whenever it is asked.
///
/// Cheap to clone. Two timetables are equal if they name the same instants in the same way.
///
/// ```
/// use chrono::{DateTime, Utc};
/// use runner::internal::schedule::Timetable;
///
/// let daily = Timetable::cron("30 2 * * *", chrono_tz::Europe::Berlin, None)?;
/// let asked: DateTime<Utc> = "2026-03-28T12:00:00Z".parse()?;
/// // The clocks jump from 02:00 to 03:00: what is due in between is due at the jump.
/// assert_eq!(daily.next(asked), Some("2026-03-29T01:00:00Z".parse()?));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Timetable {
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Rule {
    Cron(Arc<Cron>),
    Every(Every),
    At(DateTime<Utc>),
}

impl Timetable {
    /// A cron schedule; `job` seeds `H`.
    ///
    /// # Errors
    /// [`ScheduleError`] when it is no cron expression or never fires.
    pub fn cron(expr: &str, zone: Tz, job: Option<&JobName>) -> Result<Self, ScheduleError> {
        Ok(Self { rule: Rule::Cron(Arc::new(Cron::new(expr, zone, job)?)) })
    }

    /// Every multiple of `period` since the Unix epoch.
    ///
    /// # Errors
    /// [`ScheduleError`] when the period is not a whole number of seconds, or zero.
    pub fn every(period: Duration) -> Result<Self, ScheduleError> {
        Ok(Self { rule: Rule::Every(Every::new(period)?) })
    }

    /// Once.
    ///
    /// # Errors
    /// [`ScheduleError`] when the instant is not a whole second.
    pub fn at(at: DateTime<Utc>) -> Result<Self, ScheduleError> {
        if at.timestamp_subsec_nanos() != 0 {
            return Err(ScheduleError::new(format!(
                "at: {} is not a whole second; remove the fraction",
                instant(at)
            )));
        }
        Ok(Self { rule: Rule::At(at) })
    }

    /// The first instant after `after` (exclusive); `None` if there is none. Stateless.
    #[must_use]
    pub fn next(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        match &self.rule {
            Rule::Cron(cron) => cron.next(after),
            Rule::Every(every) => every.next(after),
            Rule::At(at) => (*at > after).then_some(*at),
        }
    }

    /// How many firings are in `(after, until]`, if that can be told at once or there are at most `limit`. Otherwise
    /// `Err(limit)`: there are more.
    ///
    /// # Errors
    /// `limit`, when it is not enough.
    pub(crate) fn count(
        &self,
        after: DateTime<Utc>,
        until: DateTime<Utc>,
        limit: usize,
    ) -> Result<usize, usize> {
        if let Rule::Every(every) = &self.rule {
            return Ok(every.count(after, until));
        }
        match self.between(after, until).take(limit + 1).count() {
            count if count > limit => Err(limit),
            count => Ok(count),
        }
    }

    /// Every instant after `after` (exclusive) until `until` (inclusive), in order.
    pub fn between(&self, after: DateTime<Utc>, until: DateTime<Utc>) -> impl Iterator<Item = DateTime<Utc>> {
        std::iter::successors(self.next(after), |last| self.next(*last)).take_while(move |at| *at <= until)
    }

    /// Warnings about a schedule that is valid but may not mean what its author thinks.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        match &self.rule {
            Rule::Cron(cron) => cron.warnings().to_vec(),
            Rule::Every(every) => every.warnings(),
            Rule::At(_) => Vec::new(),
        }
    }

    /// What a change of the clocks of `zone` on the local day of `firing` does to it. `None` on other
    /// days. `zone` is the one the firing is shown in.
    #[must_use]
    pub fn dst_note(&self, firing: DateTime<Utc>, zone: Tz) -> Option<DstNote> {
        DstNote::on(
            firing,
            zone,
            match &self.rule {
                Rule::Cron(cron) if cron.zone() == zone => Some(cron),
                Rule::Cron(_) | Rule::Every(_) | Rule::At(_) => None,
            },
        )
    }
}
