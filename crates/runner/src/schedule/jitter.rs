//! Jitter: a delay that is the same on every replica.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::hash::stable;
use crate::firing::JobName;

/// How long after its nominal instant a firing is due: at most `max`, in whole milliseconds, and the
/// same on every replica in every version.
///
/// It depends on the instant and on the job, so that two jobs that are due together once are not due
/// together every time.
#[must_use]
pub fn delay(job: &JobName, scheduled_at: DateTime<Utc>, max: Duration) -> Duration {
    let hash = stable(&[b"jitter", job.as_str().as_bytes(), &scheduled_at.timestamp().to_le_bytes()]);
    let max = u64::try_from(max.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(max.checked_add(1).map_or(hash, |choices| hash % choices))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn nightly() -> JobName {
        JobName::new("nightly").unwrap()
    }

    #[test]
    fn no_jitter_is_no_delay() {
        assert_eq!(delay(&nightly(), DateTime::UNIX_EPOCH, Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn the_delay_is_the_same_in_every_version() {
        let at = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        assert_eq!(delay(&nightly(), at, Duration::from_secs(30)), Duration::from_millis(4_098));
    }

    #[test]
    fn delays_spread_over_the_whole_range_and_never_beyond() {
        let max = Duration::from_secs(30);
        let delays: Vec<Duration> =
            (0..10_000).map(|n| delay(&nightly(), DateTime::UNIX_EPOCH + TimeDelta::hours(n), max)).collect();
        assert!(delays.iter().all(|d| *d <= max));
        for tenth in 0..10 {
            let here = |d: &&Duration| d.as_secs() / 3 == tenth;
            let hits = delays.iter().filter(here).count();
            assert!((800..1200).contains(&hits), "{hits} of 10000 delays in tenth {tenth}");
        }
    }
}
