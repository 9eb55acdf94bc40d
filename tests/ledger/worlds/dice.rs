//! The one source of chance in a simulated world.

use lockcore::Jitter;

/// A stream of throws that its seed determines.
#[derive(Debug)]
pub(crate) struct Dice(Jitter);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Jitter::from_seed(seed))
    }

    /// A stream of its own for whatever these numbers name, however often and in whatever order it is asked
    /// for.
    pub(crate) fn of(numbers: &[u64]) -> Self {
        let mixed = numbers.iter().fold(0, |mixed, number| Jitter::from_seed(mixed ^ number).draw());
        Self::new(mixed)
    }

    /// Evenly from `from..=to`.
    pub(crate) fn between(&self, from: u64, to: u64) -> u64 {
        from + self.0.draw() % (to - from + 1)
    }

    /// Whether something happens that happens so often in a thousand.
    pub(crate) fn in_thousand(&self, often: u64) -> bool {
        self.0.draw() % 1_000 < often
    }

    /// One of these.
    pub(crate) fn one_of<T: Copy>(&self, choices: &[T]) -> T {
        let last = u64::try_from(choices.len() - 1).expect("a short list");
        choices[usize::try_from(self.between(0, last)).expect("a short list")]
    }
}
