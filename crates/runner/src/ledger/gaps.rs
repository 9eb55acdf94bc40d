//! What the reconciliation reads from the ledger, and what it writes there.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::firing::Delivery;

/// A job whose gaps are asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Which job.
    pub job: String,
    /// How much earlier a nominal instant may be than the moment when it is due: the job's jitter.
    pub reach_back: Duration,
}

/// Up to which moment a job's gaps are decided, and which firings after it have rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Horizon {
    /// Which job.
    pub job: String,
    /// `max(known_since, reconciled_until)`: everything that was due before it is decided.
    pub decided_until: DateTime<Utc>,
    /// Nominal instant and shard of every row of the schedule since then, less `reach_back`.
    pub rows: Vec<(DateTime<Utc>, u32)>,
}

/// What happens to a job's gaps. It is decided once, for all replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Which job.
    pub job: String,
    /// The horizon that this decision is based on. If the ledger has another horizon by now, nothing is written.
    pub decided_until: DateTime<Utc>,
    /// The new horizon.
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

/// One firing without a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    /// Its nominal instant.
    pub scheduled_at: DateTime<Utc>,
    /// Its shard.
    pub shard: u32,
    /// True: `queued(catch_up)`. False: `skipped(missed)`.
    pub run: bool,
    /// A text for people, if it is skipped.
    pub detail: Option<String>,
}
