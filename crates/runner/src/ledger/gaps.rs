//! What the reconciliation reads from the ledger and what it writes there.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::firing::Delivery;

/// A job whose gaps are asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Which job.
    pub job: String,
    /// How much earlier than due its nominal instants may lie: its jitter.
    pub reach_back: Duration,
}

/// How far a job's gaps have been decided, and which firings have rows since.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// Which job.
    pub job: String,
    /// `max(known_since, reconciled_until)`: what was due until then is decided.
    pub decided_until: DateTime<Utc>,
    /// Nominal instant and shard of every row of the schedule since then, less `reach_back`.
    pub rows: Vec<(DateTime<Utc>, u32)>,
}

/// What becomes of a job's gaps: decided once, for all replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Which job.
    pub job: String,
    /// The horizon that this decision was made from; another one in the ledger makes it void.
    pub decided_until: DateTime<Utc>,
    /// The horizon from then on.
    pub until: DateTime<Utc>,
    /// Whether its runs exclude one another.
    pub exclusive: bool,
    /// What happens when an owner is lost.
    pub delivery: Delivery,
    /// How long a gap may wait in the queue.
    pub expires_in: Duration,
    /// The firings without a row.
    pub gaps: Vec<Gap>,
}

/// One firing that nobody wrote a row for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its nominal instant.
    pub scheduled_at: DateTime<Utc>,
    /// Its shard.
    pub shard: u32,
    /// `queued(catch_up)`, or `skipped(missed)`.
    pub run: bool,
    /// For people, where it is skipped.
    pub detail: Option<String>,
}
