//! What was seen from outside while it happened: every change of a row, every move of a lock, what the
//! replicas said aloud, and when the servers were whole again.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// One change of a firing's row, as a trigger of the test's own in the database saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The row's number.
    pub row: i64,
    /// When.
    pub at: DateTime<Utc>,
    /// The state before; `None` when the row came into being.
    pub from: Option<String>,
    /// The state after; `None` when the row was deleted.
    pub to: Option<String>,
    /// The fence before.
    pub fence_before: Option<i64>,
    /// The fence after.
    pub fence: Option<i64>,
}

/// One move of a lock, as the lock's server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockEvent {
    /// Which server: after a failover there are two.
    pub server: u16,
    /// When, by the server's clock.
    pub at: DateTime<Utc>,
    /// The lock's key; empty where it is about all of them.
    pub key: String,
    /// Who asked; empty where nobody did.
    pub token: String,
    /// What was done.
    pub act: LockAct,
}

/// What can be done to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockAct {
    /// It was set for so long.
    Taken(Duration),
    /// Its expiry was moved: so long from now.
    Renewed(Duration),
    /// It was deleted.
    Released,
    /// A script that may have taken, renewed or deleted it looked, and left it alone.
    LeftAlone,
    /// The server has forgotten every lock.
    Forgotten,
    /// From here on it is not known who holds what: the watch had a gap, or the server another past.
    Unwatched,
}

/// How long locks may live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockTerms {
    /// The lease.
    pub ttl: Duration,
    /// How often it may be renewed.
    pub max_renewals: u32,
}

impl LockTerms {
    /// From the moment it is taken to its end at the latest: a third of the ttl for each renewal.
    pub(super) fn longest_life(self) -> Duration {
        self.ttl + self.ttl / 3 * self.max_renewals
    }
}

/// One process of the product, from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaProcess {
    /// Its name in tokens and rows.
    pub instance: String,
    /// When it was killed without a word, if it was.
    pub killed_at: Option<DateTime<Utc>>,
    /// Its warnings and errors, as it wrote them.
    pub alarms: Vec<String>,
    /// When its words to the lock's server, or the answers, may have been lost or late.
    pub cut: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    /// When it stood still.
    pub frozen: Vec<(DateTime<Utc>, DateTime<Utc>)>,
}

impl ReplicaProcess {
    /// Whether its messages were lost or late in some part of this time.
    pub(super) fn was_cut(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> bool {
        overlaps(&self.cut, from, until)
    }

    /// Whether it stood still in some part of this time.
    pub(super) fn was_frozen(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> bool {
        overlaps(&self.frozen, from, until)
    }

    /// Whether it had the time to say something about what happened at `at`.
    pub(super) fn could_speak_after(&self, at: DateTime<Utc>, patience: Duration) -> bool {
        self.killed_at.is_none_or(|killed| killed > at + patience)
    }
}

fn overlaps(spans: &[(DateTime<Utc>, DateTime<Utc>)], from: DateTime<Utc>, until: DateTime<Utc>) -> bool {
    spans.iter().any(|(begin, end)| *begin <= until && from <= *end)
}

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Witness {
    /// Every change of every row, in order. Empty where nobody watched.
    pub changes: Vec<Change>,
    /// Every move of every lock, in order for each server. Empty where nobody watched.
    pub locks: Vec<LockEvent>,
    /// How long those locks may live.
    pub lock_terms: Option<LockTerms>,
    /// Every process there has been.
    pub processes: Vec<ReplicaProcess>,
    /// When everything was whole again, each time.
    pub heals: Vec<DateTime<Utc>>,
    /// How long after a heal each firing that was due by then must have its row.
    pub recovery_bound: Duration,
}

impl Witness {
    /// The process of this name.
    pub(super) fn process(&self, instance: &str) -> Option<&ReplicaProcess> {
        self.processes.iter().find(|process| process.instance == instance)
    }

    /// The process that made this token, whose first part is its name.
    pub(super) fn process_of_token(&self, token: &str) -> Option<&ReplicaProcess> {
        self.process(token.split('|').next()?)
    }
}
