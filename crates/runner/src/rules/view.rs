//! What a ledger sees of a firing, its job and its neighbours in one look.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::firing::{Fence, FiringId, Reason, State, Word};

/// Everything that can stand in the way of a row for one firing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The ledger's time.
    pub now: DateTime<Utc>,
    /// The firing's job; none if the ledger does not know it.
    pub job: Option<KnownJob>,
    /// The firing's own row; none if it has none.
    pub own: Option<OwnRow>,
    /// The exclusive run of the same job and shard; none if none is running.
    pub running: Option<Found>,
    /// Whether a firing of the same job and shard is queued because of an overlap.
    pub one_waits: bool,
}

/// What the ledger knows about a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownJob {
    /// An operator has paused it.
    pub paused: bool,
    /// Retention has passed over the instant of the firing in question.
    pub pruned: bool,
}

/// The row of the firing in question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnRow {
    /// Which row, and where it stands.
    pub found: Found,
    /// The newest claim; none before the first.
    pub claim_id: Option<Uuid>,
    /// What the newest claim has won; none before the first.
    pub won: Option<Won>,
    /// When a queued row may run.
    pub due_at: Option<DateTime<Utc>>,
}

/// A claim that won.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Won {
    /// The row.
    pub id: FiringId,
    /// The number minted with this claim.
    pub fence: Fence,
    /// From 1.
    pub attempt: u32,
    /// Vanished owners and interruptions of this firing so far.
    pub crashes: u32,
    /// Runs of this firing so far that failed by themselves and were given another try.
    pub failures: u32,
    /// The ledger's time of the claim.
    pub started_at: DateTime<Utc>,
}

/// A row that stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which row.
    pub id: FiringId,
    /// Its nominal instant.
    pub scheduled_at: DateTime<Utc>,
    /// Where it stands.
    pub state: Word<State>,
    /// Why.
    pub reason: Option<Word<Reason>>,
    /// Who has it.
    pub owner: Option<String>,
}
