//! The randomness in waits: a stream of bits that depends only on its seed.

use std::sync::atomic::{AtomicU64, Ordering};

use uuid::Uuid;

/// Random bits that spread the waits of processes. They are not good enough for secrets.
///
/// The seed is passed in, so that a test can repeat the same waits.
#[derive(Debug)]
pub struct Jitter(AtomicU64);

impl Jitter {
    /// The stream of this seed. It is always the same.
    #[must_use]
    pub const fn from_seed(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// The next bits of the stream (SplitMix64).
    pub fn draw(&self) -> u64 {
        const STEP: u64 = 0x9E37_79B9_7F4A_7C15;
        let mixed = self.0.fetch_add(STEP, Ordering::Relaxed).wrapping_add(STEP);
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }
}

impl Default for Jitter {
    /// A stream with a random seed.
    fn default() -> Self {
        Self::from_seed(Uuid::new_v4().as_u64_pair().0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_determines_the_stream() {
        let streams = [1, 1, 2].map(|seed| {
            let jitter = Jitter::from_seed(seed);
            [jitter.draw(), jitter.draw(), jitter.draw()]
        });
        assert_eq!(streams[0], streams[1]);
        assert_ne!(streams[0], streams[2]);
        assert_ne!(Jitter::default().draw(), Jitter::default().draw());
    }

    /// So that the waits of a seed that once failed a test stay the same.
    #[test]
    fn the_stream_is_that_of_splitmix64() {
        let jitter = Jitter::from_seed(1_234_567);
        let known = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([jitter.draw(), jitter.draw(), jitter.draw()], known);
    }

    #[test]
    fn the_bits_are_spread_over_the_whole_range() {
        let jitter = Jitter::from_seed(7);
        let mut quarters = [0_u32; 4];
        for _ in 0..4_000 {
            quarters[usize::try_from(jitter.draw() >> 62).unwrap()] += 1;
        }
        assert!(quarters.iter().all(|count| (900..1_100).contains(count)), "{quarters:?}");
    }
}
