//! What was recorded from outside while it happened: every change of a row, every change of a lock, the warnings of
//! the replicas, and when all faults had ended.

use std::time::Duration;

use chrono::{DateTime, Utc};

/// One change of a firing's row, recorded by a trigger that the test has added to the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The row's number.
    pub row: i64,
    /// When.
    pub at: DateTime<Utc>,
    /// The state before; `None` when the row was inserted.
    pub from: Option<String>,
    /// The state after; `None` when the row was deleted.
    pub to: Option<String>,
    /// The fence before.
    pub fence_before: Option<i64>,
    /// The fence after.
    pub fence: Option<i64>,
}

/// One change of a lock, as the lock's server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockEvent {
    /// Which server: after a failover there are two.
    pub server: u16,
    /// When, by the server's clock.
    pub at: DateTime<Utc>,
    /// The lock's key; empty for an event about all locks.
    pub key: String,
    /// The token of the request; empty where there was no request.
    pub token: String,
    /// What was done.
    pub act: LockAct,
}

/// What happened to a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockAct {
    /// It was set, with this ttl.
    Taken(Duration),
    /// Its expiry was set to this time from now.
    Renewed(Duration),
    /// It was deleted.
    Released,
    /// A script that can take or delete it read it, and changed nothing.
    LeftAlone,
    /// The server has lost all locks.
    Forgotten,
    /// From here on it is not known which locks are held: the watch had a gap, or the server got other data.
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
    /// The longest life of a lock: the ttl, and a third of it for each renewal.
    pub(super) fn longest_life(self) -> Duration {
        self.ttl + self.ttl / 3 * self.max_renewals
    }
}

/// One process of the product, from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReplicaProcess {
    /// Its name in tokens and rows.
    pub instance: String,
    /// When it was killed, if it was.
    pub killed_at: Option<DateTime<Utc>>,
    /// The lines of its warnings and errors.
    pub alarms: Vec<String>,
    /// When messages between it and the lock's server may have been lost or late.
    pub cut: Vec<(DateTime<Utc>, DateTime<Utc>)>,
    /// When it was frozen.
    pub frozen: Vec<(DateTime<Utc>, DateTime<Utc>)>,
}

impl ReplicaProcess {
    /// Whether messages may have been lost or late in some part of this time.
    pub(super) fn was_cut(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> bool {
        overlaps(&self.cut, from, until)
    }

    /// Whether it was frozen in some part of this time.
    pub(super) fn was_frozen(&self, from: DateTime<Utc>, until: DateTime<Utc>) -> bool {
        overlaps(&self.frozen, from, until)
    }

    /// Whether it lived long enough to log something about an event at `at`.
    pub(super) fn could_speak_after(&self, at: DateTime<Utc>, patience: Duration) -> bool {
        self.killed_at.is_none_or(|killed| killed > at + patience)
    }
}

fn overlaps(spans: &[(DateTime<Utc>, DateTime<Utc>)], from: DateTime<Utc>, until: DateTime<Utc>) -> bool {
    spans.iter().any(|(begin, end)| *begin <= until && from <= *end)
}

/// Everything that was recorded.
#[derive(Clone, Debug, Default)]
pub struct Witness {
    /// Every change of every row, in order. Empty if nothing was recorded.
    pub changes: Vec<Change>,
    /// Every change of every lock, in order for each server. Empty if nothing was recorded.
    pub locks: Vec<LockEvent>,
    /// How long those locks may live.
    pub lock_terms: Option<LockTerms>,
    /// Every process there has been.
    pub processes: Vec<ReplicaProcess>,
    /// Each moment when all faults had ended.
    pub heals: Vec<DateTime<Utc>>,
    /// The limit for recovery: after a heal, each firing that was due by then must have its row within this time.
    pub recovery_bound: Duration,
}

impl Witness {
    /// The process of this name.
    pub(super) fn process(&self, instance: &str) -> Option<&ReplicaProcess> {
        self.processes.iter().find(|process| process.instance == instance)
    }

    /// The process that made this token. A token begins with the name of its process.
    pub(super) fn process_of_token(&self, token: &str) -> Option<&ReplicaProcess> {
        self.process(token.split('|').next()?)
    }
}
