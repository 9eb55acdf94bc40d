//! Layer two: the ledger decides. One row per firing under a UNIQUE constraint, in PostgreSQL or SQLite.
//!
//! There is one small trait for each client. [`Ledger`] is for the corridor of a firing. [`Queue`], [`Sweeping`],
//! [`Gaps`] and [`Housekeeping`] are for what every replica does besides firing. [`Operators`] is for people's
//! orders. [`Reader`] only reads. [`Effects`] opens jobs' own transactions. Each database implements all of them.
//! A "no" is a value; an error means that we do not know what happened.

mod effect;
mod error;
mod gaps;
mod open;
mod options;
pub mod postgres;
mod rows;
mod server;
mod sqlite;
mod values;

use std::fmt::Debug;
use std::time::Duration;

use futures_util::future::BoxFuture;

pub use effect::{Effect, EffectError, EffectTerms, Effects, Transaction, Work};
pub use error::LedgerError;
pub use gaps::{Decision, Gap, Horizon, Question};
pub use open::{Opened, check_url, migrate, open};
pub use options::LedgerOptions;
/// The client of both databases, for what a job does in its [`Transaction`].
pub use sqlx;

pub use rows::{AttemptRow, FiringRow, HistoryFilter, JobRow};
pub use server::{Reading, Server, Succession};
pub use sqlite::SqliteLedger;
pub use values::{
    Counted, Due, Expired, Heartbeat, JobRegistration, Run, Running, Settled, Settlement, Suspect, Swept,
};

pub use crate::firing::FiringId;
pub use crate::rules::{Claim, ClaimRequest, Ending, Enqueue, Enqueued, Entry, Found, Skip, Skipped, Won};

/// Every answer of the ledger.
pub type Answer<'a, T> = BoxFuture<'a, Result<T, LedgerError>>;

/// What the corridor writes. Each call is one transaction on the server and one row at most.
///
/// # Cancel safety
/// A dropped call leaves its outcome unknown and closes its connection. All five are safe to repeat.
pub trait Ledger: Debug + Send + Sync + 'static {
    /// Wins a firing, or says why not.
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> Answer<'a, Claim>;

    /// After a claim whose answer was lost: whether the row is `running` under this very `claim_id`.
    fn confirm<'a>(&'a self, request: &'a ClaimRequest) -> Answer<'a, Option<Won>>;

    /// Moves the lease of a run forward.
    fn heartbeat(&self, run: Run, lease: Duration) -> Answer<'_, Heartbeat>;

    /// Ends a run. Repeating it after a lost answer says `Recorded` again.
    fn settle<'a>(&'a self, settlement: &'a Settlement) -> Answer<'a, Settled>;

    /// Writes that a firing did not run, unless it has a row already.
    fn skip<'a>(&'a self, skip: &'a Skip) -> Answer<'a, Skipped>;
}

/// Firings that wait for an owner.
pub trait Queue: Debug + Send + Sync + 'static {
    /// Puts a firing into the queue, unless it has a row already.
    fn enqueue<'a>(&'a self, enqueue: &'a Enqueue) -> Answer<'a, Enqueued>;

    /// Queued firings of these jobs whose `due_at` has come, oldest first. Firings that cannot be claimed now
    /// (paused, or behind an exclusive run) are left out: they could fill the list and starve the others. Rows
    /// with words that only a newer program knows are left out too.
    fn due<'a>(&'a self, jobs: &'a [String], limit: u32) -> Answer<'a, Vec<Due>>;

    /// Ends queued firings whose `expires_at` has come, of any job.
    fn expire(&self, limit: u32) -> Answer<'_, Vec<Expired>>;
}

/// Runs whose owner may be gone. Any replica may sweep at any time.
pub trait Sweeping: Debug + Send + Sync + 'static {
    /// Every running row, for the sweep to watch.
    fn running(&self) -> Answer<'_, Vec<Running>>;

    /// Ends those suspects that have not changed since they were seen and whose lease is over.
    fn sweep<'a>(&'a self, suspects: &'a [Suspect]) -> Answer<'a, Vec<Swept>>;
}

/// Due moments that have no row.
pub trait Gaps: Debug + Send + Sync + 'static {
    /// Up to which moment the gaps of these jobs are decided, and which firings after it have rows.
    fn horizons<'a>(&'a self, questions: &'a [Question]) -> Answer<'a, Vec<Horizon>>;

    /// Writes rows for a job's gaps and raises its horizon, in one transaction, unless another
    /// replica has done so since the horizon was read. A paused job's gaps are skipped(paused).
    fn decide<'a>(&'a self, decision: &'a Decision) -> Answer<'a, bool>;
}

/// What keeps the ledger's tables and its server in order.
pub trait Housekeeping: Debug + Send + Sync + 'static {
    /// Makes the jobs known. `known_since` starts anew where `spec_hash` differs from the stored one.
    fn register<'a>(&'a self, jobs: &'a [JobRegistration]) -> Answer<'a, ()>;

    /// Removes terminal rows that ended more than `retention` ago, raising each job's
    /// `pruned_before` first so that a removed firing can never be claimed again.
    fn prune(&self, retention: Duration, batch: u32) -> Answer<'_, u64>;

    /// Records which server keeps the ledger now, so that fences go on growing there. Returns the server that
    /// was recorded before, if it was a different one.
    fn adopt(&self) -> Answer<'_, Option<Server>>;
}

/// What people order.
pub trait Operators: Debug + Send + Sync + 'static {
    /// Stops new claims of a job. When it returns, no claim that began earlier can still win.
    /// `false` if the ledger does not know the job.
    fn pause<'a>(&'a self, job: &'a str, by: &'a str, note: &'a str) -> Answer<'a, bool>;

    /// Allows claims again. `false` if the ledger does not know the job.
    fn resume<'a>(&'a self, job: &'a str) -> Answer<'a, bool>;

    /// Asks the owner of a running firing to stop, or cancels a queued one. `false` if it is neither.
    fn cancel(&self, id: FiringId) -> Answer<'_, bool>;
}

/// What only reads.
pub trait Reader: Debug + Send + Sync + 'static {
    /// The ledger's clock. Also the cheapest way to learn whether the ledger answers, and which server does.
    fn now(&self) -> Answer<'_, Reading>;

    /// Rows, newest `scheduled_at` first.
    fn history<'a>(&'a self, filter: &'a HistoryFilter) -> Answer<'a, Vec<FiringRow>>;

    /// One row.
    fn firing(&self, id: FiringId) -> Answer<'_, Option<FiringRow>>;

    /// Superseded attempts of a firing, oldest first.
    fn attempts(&self, id: FiringId) -> Answer<'_, Vec<AttemptRow>>;

    /// The jobs this namespace has seen, by name.
    fn jobs(&self) -> Answer<'_, Vec<JobRow>>;

    /// Rows per state of this namespace.
    fn counts(&self) -> Answer<'_, Vec<Counted>>;
}
