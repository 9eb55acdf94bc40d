//! What goes wrong, and when: all from one seed.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// A small generator of our own, so that a seed means the same in every version of everything.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    /// Between `from` and `until` milliseconds.
    pub(crate) fn millis(&mut self, from: u64, until: u64) -> Duration {
        Duration::from_millis(from + self.next() % (until - from))
    }
}

/// One thing that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// kill -9 of a replica.
    Kill,
    /// SIGSTOP of a replica, for part of its leases or for all of them.
    Freeze,
    /// SIGSTOP of a replica in a run, until another has taken the run over.
    FreezeInRun,
    /// SIGTERM of a replica.
    Drain,
    /// One replica cannot reach Redis.
    CutRedis,
    /// One replica cannot reach PostgreSQL.
    CutPostgres,
    /// What one replica asks of PostgreSQL is done, and it does not learn of it.
    SilencePostgres,
    /// The reply to one request is swallowed and its connection closed.
    SwallowReply,
    /// Every connection of one replica to PostgreSQL is closed.
    ResetPostgres,
    /// Redis forgets everything.
    Flush,
    /// Redis dies and comes back empty.
    RestartRedis,
    /// A copy of Redis that lags takes over, and the old server goes on for a while.
    FailOver,
}

/// How often each comes up in one deck.
const CARDS: [(Fault, usize); 12] = [
    (Fault::Kill, 3),
    (Fault::Freeze, 2),
    (Fault::FreezeInRun, 3),
    (Fault::Drain, 1),
    (Fault::CutRedis, 2),
    (Fault::CutPostgres, 2),
    (Fault::SilencePostgres, 2),
    (Fault::SwallowReply, 4),
    (Fault::ResetPostgres, 2),
    (Fault::Flush, 5),
    (Fault::RestartRedis, 1),
    (Fault::FailOver, 2),
];

/// Faults in a random order, each as often as its weight: a short run meets the rare ones too.
#[derive(Debug, Default)]
pub(crate) struct Deck(Vec<Fault>);

impl Deck {
    /// The next one; a new deck is shuffled when the old one is used up.
    pub(crate) fn draw(&mut self, dice: &mut Dice) -> Fault {
        if self.0.is_empty() {
            self.0 = CARDS.iter().flat_map(|(fault, count)| std::iter::repeat_n(*fault, *count)).collect();
        }
        let at = dice.below(self.0.len());
        self.0.swap_remove(at)
    }
}

/// How often each fault was inflicted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(BTreeMap<Fault, usize>);

impl Faults {
    pub(crate) fn count(&mut self, fault: Fault) {
        *self.0.entry(fault).or_default() += 1;
    }

    pub(crate) fn failovers(&self) -> usize {
        self.0.get(&Fault::FailOver).copied().unwrap_or_default()
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<_> = self.0.iter().map(|(fault, count)| format!("{fault:?} {count}")).collect();
        write!(f, "{} ({})", self.0.values().sum::<usize>(), each.join(", "))
    }
}
