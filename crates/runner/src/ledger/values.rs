//! What goes into the ledger's operations and what comes out.

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::firing::{Delivery, Fence, Firing, Instance, State};

/// A row's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FiringId(pub i64);

/// How a firing enters the corridor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// No row yet: the claim inserts it, at most `not_after` past the nominal instant.
    Fresh {
        /// `jitter + start_deadline`.
        not_after: Duration,
    },
    /// A queued row: the claim takes it.
    Queued(FiringId),
}

/// The wish to own a firing.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Which firing.
    pub firing: Firing,
    /// Insert a row or take a queued one.
    pub entry: Entry,
    /// New for every try: the only proof that a claim whose answer was lost is ours.
    pub claim_id: Uuid,
    /// In whose name.
    pub owner: Instance,
    /// Whether no other run of this job and shard may be running.
    pub exclusive: bool,
    /// What the sweep does when the owner vanishes.
    pub delivery: Delivery,
    /// How long the run is believed without a heartbeat.
    pub lease: Duration,
}

/// The answer to a claim. Where several "no" apply it is the first of `Duplicate`, `Unregistered`,
/// `Pruned`, `Paused`, `TooEarly`, `TooLate`, `Overlap`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is ours to run.
    Won(Won),
    /// The firing has a row that is not ours to take.
    Duplicate(Found),
    /// Another run of this job and shard is running.
    Overlap(Found),
    /// The job is paused.
    Paused,
    /// The ledger's clock says it is not due for this long yet.
    TooEarly(Duration),
    /// The ledger's clock says its start deadline has passed.
    TooLate,
    /// Retention has passed over this instant.
    Pruned,
    /// The ledger does not know the job.
    Unregistered,
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

/// The row that stands in the way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which row.
    pub id: FiringId,
    /// Its nominal instant.
    pub scheduled_at: DateTime<Utc>,
    /// Where it stands.
    pub state: State,
    /// Why.
    pub reason: Option<String>,
    /// Who has it.
    pub owner: Option<String>,
}

/// A run as its owner names it: no other run ever has the same pair.
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

/// How a run ends, decided by the executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A terminal state.
    Terminal {
        /// `Succeeded`, `Failed`, `Lost` or `Cancelled`.
        state: State,
        /// Why, where the state alone does not say it.
        reason: Option<String>,
    },
    /// Back into the queue.
    Requeue {
        /// `retry` or `interrupted`.
        reason: String,
        /// From now, by the ledger's clock.
        due_in: Duration,
        /// From now, by the ledger's clock.
        expires_in: Duration,
    },
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
    /// The row says so.
    Recorded,
    /// Someone took over: our result is void.
    Fenced,
}

/// The wish to record that a firing did not run.
#[derive(Clone, Debug)]
pub struct Skip {
    /// Which firing.
    pub firing: Firing,
    /// `overlap`, `missed`, `paused`, `lock_unavailable`, ...
    pub reason: String,
    /// Details for people.
    pub detail: Option<String>,
    /// Insert only while an exclusive run of this job and shard is running.
    pub only_while_running: bool,
}

/// The answer to a skip.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Skipped {
    /// The row says so.
    Recorded,
    /// The firing has a row already.
    AlreadyThere(State),
    /// Nothing runs that it could overlap with.
    NothingRunning,
    /// The ledger does not take rows for this instant: pruned, or an unknown job.
    Refused,
}

/// A job as the file declares it, for the ledger to know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRegistration {
    /// Its name.
    pub name: String,
    /// Changes when schedule, zone or `enabled` change.
    pub spec_hash: String,
}

/// The wish to queue a firing.
#[derive(Clone, Debug)]
pub struct Enqueue {
    /// Which firing.
    pub firing: Firing,
    /// Why it waits: `trigger`, `catch_up`, `overlap`, ...
    pub reason: String,
    /// Whether it excludes other runs.
    pub exclusive: bool,
    /// What happens when an owner is lost.
    pub delivery: Delivery,
    /// From now, by the ledger's clock.
    pub due_in: Duration,
    /// From now, by the ledger's clock.
    pub expires_in: Duration,
}

/// The answer to an enqueue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Enqueued {
    /// It waits, as this row.
    Queued(FiringId),
    /// The firing has a row already.
    AlreadyThere(Found),
    /// One waits for the overlap already.
    WaitingAlready,
    /// The job is paused, pruned past this instant, or unknown.
    Refused,
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
    pub reason: Option<String>,
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
    pub delivery: Delivery,
    /// Moves with each heartbeat.
    pub lease_until: DateTime<Utc>,
    /// What is left of the lease by the ledger's clock; zero if it is over.
    pub remaining: Duration,
}

/// A run that one replica has seen untouched for a whole lease on its own clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suspect {
    /// The run.
    pub run: Run,
    /// Its lease as it was seen: a heartbeat in between makes the sweep miss.
    pub lease_until: DateTime<Utc>,
    /// More vanished owners than this end the firing as `failed(crash_loop)`.
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
    /// Why.
    pub reason: Option<String>,
}

/// Rows of one job in one state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Whose.
    pub job: String,
    /// Which state.
    pub state: State,
    /// How many.
    pub rows: u64,
}
