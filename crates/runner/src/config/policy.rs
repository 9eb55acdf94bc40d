//! The choices a job makes, as types.

use crate::firing::words;

/// What happens when a firing is due while the job's previous one runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Overlap {
    /// It is recorded as skipped.
    #[default]
    Skip,
    /// One waits.
    Queue,
    /// The running one is asked to stop, the new one waits for that.
    Replace,
    /// Both run.
    Allow,
}

/// Which layers stand before a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Guard {
    /// The lock and the row.
    #[default]
    Both,
    /// The row alone.
    Ledger,
    /// The lock alone; rows record but do not guard.
    Lock,
    /// Nothing: every replica runs it; rows record but do not guard.
    None,
}

/// What happens when the lock's server cannot be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnUnavailable {
    /// The row alone decides.
    #[default]
    LedgerOnly,
    /// The firing does not run.
    Skip,
}

words!(Overlap { Skip = "skip", Queue = "queue", Replace = "replace", Allow = "allow" });
words!(Guard { Both = "both", Ledger = "ledger", Lock = "lock", None = "none" });
words!(OnUnavailable { LedgerOnly = "ledger_only", Skip = "skip" });
