//! `every = "30s"`: the multiples of a period since the Unix epoch.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::{ScheduleError, show_duration};

/// A period of whole seconds, at least one.
///
/// It counts from the epoch and not from the start of a process: replicas that start at different
/// times must mean the same instants.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Every {
    seconds: i64,
}

impl Every {
    pub(super) fn new(period: Duration) -> Result<Self, ScheduleError> {
        let shown = show_duration(period);
        if period.is_zero() {
            return Err(ScheduleError::new("every: a period of 0s is not possible; use at least 1s"));
        }
        if period.subsec_nanos() != 0 {
            return Err(ScheduleError::new(format!(
                "every: {shown} is not a whole number of seconds; use whole seconds, at least 1s"
            )));
        }
        // A bound that keeps every sum below within chrono's range of years.
        match i64::try_from(period.as_secs()) {
            Ok(seconds) if seconds <= MAX_SECONDS => Ok(Self { seconds }),
            _ => Err(ScheduleError::new(format!("every: {shown} is too long; use at most 1000 years"))),
        }
    }

    pub(super) fn next(self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        let multiples = after.timestamp().div_euclid(self.seconds).checked_add(1)?;
        DateTime::from_timestamp(multiples.checked_mul(self.seconds)?, 0)
    }

    /// How many instants are in `(after, until]`.
    pub(super) fn count(self, after: DateTime<Utc>, until: DateTime<Utc>) -> usize {
        let multiples = |at: DateTime<Utc>| at.timestamp().div_euclid(self.seconds);
        usize::try_from(multiples(until) - multiples(after)).unwrap_or(0)
    }

    pub(super) fn warnings(self) -> Vec<String> {
        if DAY % self.seconds == 0 || self.seconds % DAY == 0 {
            return Vec::new();
        }
        let period = show_duration(Duration::from_secs(self.seconds.unsigned_abs()));
        vec![format!(
            "every {period} does not divide a day: it counts from 1970-01-01T00:00:00Z, so it fires at other times each day"
        )]
    }
}

const DAY: i64 = 86_400;
const MAX_SECONDS: i64 = 1000 * 366 * DAY;

#[cfg(test)]
mod tests {
    use super::*;

    fn every(seconds: u64) -> Every {
        Every::new(Duration::from_secs(seconds)).unwrap()
    }

    #[test]
    fn instants_are_multiples_since_the_epoch() {
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        assert_eq!(every(30).next(at(59)), Some(at(60)));
        assert_eq!(every(30).next(at(60)), Some(at(90)));
        assert_eq!(every(7).next(at(-1)), Some(at(0)));
        assert_eq!(every(7).next(at(-8)), Some(at(-7)));
        let between = DateTime::from_timestamp(59, 999_999_999).unwrap();
        assert_eq!(every(30).next(between), Some(at(60)));
    }

    #[test]
    fn a_period_that_is_no_whole_second_is_refused() {
        for (period, word) in [
            (Duration::ZERO, "at least 1s"),
            (Duration::from_millis(500), "whole seconds"),
            (Duration::from_millis(1500), "1s 500ms"),
            (Duration::from_secs(u64::MAX), "too long"),
        ] {
            let error = Every::new(period).unwrap_err();
            assert!(error.message.contains(word), "{error}");
        }
    }

    #[test]
    fn a_period_that_drifts_through_the_day_is_warned_about() {
        assert!(every(7 * 3600).warnings()[0].contains("7h"));
        assert!(every(900).warnings().is_empty());
        assert!(every(7 * 86_400).warnings().is_empty());
    }
}
