//! How long to wait before the next try: exponential backoff with full jitter. The randomness is passed in.

use std::time::Duration;

/// A shorter wait would be a hot loop.
const FLOOR: Duration = Duration::from_millis(2);

/// Waits whose ceiling doubles from try to try. Each wait is a random part of its ceiling (full jitter).
///
/// Without jitter, processes that failed at the same moment would all try again at the same moment, each
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    initial: Duration,
    max: Duration,
}

impl Backoff {
    /// A first wait of at most `initial`; no wait longer than `max`.
    #[must_use]
    pub fn new(initial: Duration, max: Duration) -> Self {
        let max = max.max(FLOOR);
        Self { initial: initial.clamp(FLOOR, max), max }
    }

    /// The longest wait after the failed try number `attempt`, counted from 0.
    fn ceiling(&self, attempt: u32) -> Duration {
        let factor = 2_u32.checked_pow(attempt).unwrap_or(u32::MAX);
        self.initial.saturating_mul(factor).min(self.max)
    }

    /// The wait after the failed try number `attempt`, counted from 0: `random` picks it evenly between 2 ms
    /// and the ceiling.
    #[must_use]
    pub fn delay(&self, attempt: u32, random: u64) -> Duration {
        // 32 bits are enough, and their product with any ceiling fits.
        let share = u128::from(random >> 32);
        let nanos = self.ceiling(attempt).as_nanos() * share / u128::from(u32::MAX);
        Duration::from_nanos_u128(nanos).max(FLOOR)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_ceiling_doubles_up_to_the_maximum() {
        let backoff = Backoff::new(Duration::from_millis(10), Duration::from_millis(35));
        let ceilings = [0, 1, 2, 3, 64].map(|attempt| backoff.ceiling(attempt).as_millis());
        assert_eq!(ceilings, [10, 20, 35, 35, 35]);
    }

    #[test]
    fn jitter_is_full() {
        let backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1));
        let delays = [0, u64::MAX / 2, u64::MAX].map(|random| backoff.delay(0, random).as_millis());
        assert_eq!(delays, [2, 49, 100]);
        assert_eq!(Backoff::new(Duration::MAX, Duration::MAX).delay(9, u64::MAX), Duration::MAX);
    }

    proptest! {
        #[test]
        fn no_wait_is_a_hot_loop_or_longer_than_its_ceiling(
            initial in 0_u64..10_000, max in 0_u64..100_000, attempt: u32, random: u64,
        ) {
            let backoff = Backoff::new(Duration::from_millis(initial), Duration::from_millis(max));
            let delay = backoff.delay(attempt, random);
            prop_assert!(delay >= FLOOR);
            prop_assert!(delay <= backoff.ceiling(attempt));
        }
    }
}
