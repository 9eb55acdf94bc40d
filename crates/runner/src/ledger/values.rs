//! The arguments and the answers of the ledger's operations.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::firing::{Delivery, Fence, Firing, FiringId, Reason, State, Word};
use crate::rules::Ending;

/// Identifies a run: no other run ever has the same pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// The row.
    pub id: FiringId,
    /// The fence of the claim.
    pub fence: Fence,
}

/// The answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heartbeat {
    /// The run is still ours.
    Alive {
        /// Someone wants it stopped.
        cancel_requested: bool,
    },
    /// The run is no longer ours: stop, and record nothing.
    Lost,
}

/// The end of a run.
#[derive(Clone, Debug)]
pub struct Settlement {
    /// Which run.
    pub run: Run,
    /// How it ends.
    pub ending: Ending,
    /// Whether the run counts as crashed (interruptions other than drain).
    pub crashed: bool,
    /// What went wrong, for people.
    pub error: Option<String>,
    /// What the run printed or left.
    pub output: Option<String>,
}

/// The answer to a settle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The row has this end.
    Recorded,
    /// Another owner took over: our result does not count.
    Fenced,
}

/// A job as the file declares it, for the ledger to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRegistration {
    /// Its name.
    pub name: String,
    /// Changes when schedule, zone or `enabled` change.
    pub spec_hash: String,
}

/// A queued firing whose time has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due {
    /// The row.
    pub id: FiringId,
    /// Which firing.
    pub firing: Firing,
    /// Runs so far.
    pub attempt: u32,
    /// Why it waited.
    pub reason: Option<Word<Reason>>,
}

/// A queued firing that waited too long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expired {
    /// The row.
    pub id: FiringId,
    /// Whose.
    pub job: String,
    /// `Skipped` if it never ran, `Failed` if it did.
    pub state: State,
    /// `Missed` or `Expired`.
    pub reason: Reason,
}

/// A running row, for the sweep to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// The run.
    pub run: Run,
    /// Whose.
    pub job: String,
    /// Its nominal instant.
    pub scheduled_at: DateTime<Utc>,
    /// Who has it.
    pub owner: String,
    /// What happens when the owner is lost.
    pub delivery: Word<Delivery>,
    /// Moves with each heartbeat.
    pub lease_until: DateTime<Utc>,
    /// What is left of the lease by the ledger's clock; zero if it is over.
    pub remaining: Duration,
}

/// A run that one replica has seen unchanged for a whole lease, by its own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// The run.
    pub run: Run,
    /// Its lease as it was seen. If a heartbeat has moved the lease since, the sweep does not end the run.
    pub lease_until: DateTime<Utc>,
    /// If more owners than this are lost, the firing ends as `failed(crash_loop)`.
    pub max_crashes: u32,
    /// How long the firing may then wait in the queue.
    pub expires_in: Duration,
}

/// A run that the sweep ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Swept {
    /// The run that is over.
    pub run: Run,
    /// Whose.
    pub job: String,
    /// `Queued`, `Lost`, `Failed` or `Cancelled`.
    pub state: State,
    /// Why; none if it was cancelled.
    pub reason: Option<Reason>,
}

/// Rows of one job in one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Whose.
    pub job: String,
    /// Which state.
    pub state: Word<State>,
    /// How many.
    pub rows: u64,
}
