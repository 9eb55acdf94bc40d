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
    /// SIGSTOP of a replica, often past its leases.
    Freeze,
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
}

/// How often each comes up, compared with the others.
const WEIGHTS: [(Fault, usize); 10] = [
    (Fault::Kill, 3),
    (Fault::Freeze, 3),
    (Fault::Drain, 1),
    (Fault::CutRedis, 2),
    (Fault::CutPostgres, 2),
    (Fault::SilencePostgres, 2),
    (Fault::SwallowReply, 4),
    (Fault::ResetPostgres, 2),
    (Fault::Flush, 6),
    (Fault::RestartRedis, 1),
];

impl Fault {
    pub(crate) fn roll(dice: &mut Dice) -> Self {
        let total: usize = WEIGHTS.iter().map(|(_, weight)| weight).sum();
        let mut left = dice.below(total);
        for (fault, weight) in WEIGHTS {
            if left < weight {
                return fault;
            }
            left -= weight;
        }
        Self::Flush
    }
}

/// How often each fault was inflicted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults(BTreeMap<Fault, usize>);

impl Faults {
    pub(crate) fn count(&mut self, fault: Fault) {
        *self.0.entry(fault).or_default() += 1;
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each: Vec<_> = self.0.iter().map(|(fault, count)| format!("{fault:?} {count}")).collect();
        write!(f, "{} ({})", self.0.values().sum::<usize>(), each.join(", "))
    }
}
