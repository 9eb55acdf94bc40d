//! Why a firing is where it is, and why a run was asked to stop.

use super::words::words;

/// Why a firing is in its state. Which reasons go with which state is said at each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Reason {
    /// Queued: a person or a program asked for it.
    Trigger,
    /// Queued: the schedule asked for it and nobody ran it in time.
    CatchUp,
    /// Queued: an attempt failed, and another one is left.
    Retry,
    /// Queued: its run was stopped for a reason that is not the job's.
    Interrupted,
    /// Queued or lost: the owner of its run vanished.
    OwnerLost,
    /// Queued or skipped: another run of the job was running.
    Overlap,
    /// Skipped: nobody ran it before its start deadline.
    Missed,
    /// Skipped: the job was paused.
    Paused,
    /// Skipped: the lock's server was away, and the job does not run without a lock.
    LockUnavailable,
    /// Failed: the job said so.
    Error,
    /// Failed: the job's code panicked.
    Panicked,
    /// Failed: it ran longer than its `timeout`.
    Timeout,
    /// Failed: too many owners of its runs vanished.
    CrashLoop,
    /// Failed: it waited too long in the queue for another attempt.
    Expired,
    /// Lost: the lock was gone or someone else's.
    LockLost,
    /// Lost: the lease in the ledger could not be kept.
    LeaseLost,
    /// Lost: the lock was renewed as often as it may be.
    RenewalCap,
    /// Lost: the replica was shutting down.
    Drain,
    /// Cancelled: someone asked for that. The ledger writes no reason beside this state.
    Requested,
}

words!(pub Reason {
    Trigger = "trigger",
    CatchUp = "catch_up",
    Retry = "retry",
    Interrupted = "interrupted",
    OwnerLost = "owner_lost",
    Overlap = "overlap",
    Missed = "missed",
    Paused = "paused",
    LockUnavailable = "lock_unavailable",
    Error = "error",
    Panicked = "panicked",
    Timeout = "timeout",
    CrashLoop = "crash_loop",
    Expired = "expired",
    LockLost = "lock_lost",
    LeaseLost = "lease_lost",
    RenewalCap = "renewal_cap",
    Drain = "drain",
    Requested = "requested",
});

/// Why a run is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Cause {
    /// It ran longer than its `timeout`.
    Timeout,
    /// Its lock is gone or someone else's.
    LockLost,
    /// Its lock was renewed as often as it may be.
    RenewalCap,
    /// Its lease in the ledger could not be kept.
    LeaseLost,
    /// The replica is shutting down.
    Drain,
    /// Someone asked for it.
    CancelRequested,
}

words!(pub Cause {
    Timeout = "timeout",
    LockLost = "lock_lost",
    RenewalCap = "renewal_cap",
    LeaseLost = "lease_lost",
    Drain = "drain",
    CancelRequested = "cancel_requested",
});

impl From<Cause> for Reason {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Timeout => Self::Timeout,
            Cause::LockLost => Self::LockLost,
            Cause::RenewalCap => Self::RenewalCap,
            Cause::LeaseLost => Self::LeaseLost,
            Cause::Drain => Self::Drain,
            Cause::CancelRequested => Self::Requested,
        }
    }
}
