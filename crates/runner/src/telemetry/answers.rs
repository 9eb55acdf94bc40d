//! What the two layers may answer, as the labels of the metrics name it.

use crate::firing::words;

/// Answers to taking a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LockAnswer {
    /// It is ours.
    Acquired,
    /// Someone else has it.
    Held,
    /// What it would be taken for has been done.
    Done,
    /// The server gave no answer.
    Unavailable,
}

words!(pub(crate) LockAnswer { Acquired = "acquired", Held = "held", Done = "done", Unavailable = "unavailable" });

/// Answers to renewing a lock.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RenewalAnswer {
    /// It lives for another ttl.
    Renewed,
    /// The server gave no answer.
    Failed,
    /// It is gone or someone else's.
    NotMine,
}

words!(pub(crate) RenewalAnswer { Renewed = "renewed", Failed = "failed", NotMine = "not_mine" });

/// Why a lock can no longer be relied on.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LockLoss {
    /// It is gone or someone else's.
    NotMine,
    /// Its server has not answered for so long that the lock may have expired.
    Unreachable,
    /// It was renewed as often as it may be.
    Cap,
}

words!(pub(crate) LockLoss { NotMine = "not_mine", Unreachable = "unreachable", Cap = "cap" });

/// Answers to a claim.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ClaimAnswer {
    /// The firing is ours to run.
    Won,
    /// It has a row that is not ours to take.
    Duplicate,
    /// Another run of the job is running.
    Overlap,
    /// The job is paused.
    Paused,
    /// It is not due yet.
    TooEarly,
    /// Its start deadline has passed.
    TooLate,
    /// Retention has passed over it.
    Pruned,
    /// The ledger does not know the job.
    Unregistered,
    /// The ledger gave no answer.
    Unknown,
}

words!(pub(crate) ClaimAnswer {
    Won = "won",
    Duplicate = "duplicate",
    Overlap = "overlap",
    Paused = "paused",
    TooEarly = "too_early",
    TooLate = "too_late",
    Pruned = "pruned",
    Unregistered = "unregistered",
    Unknown = "unknown",
});

/// What the ledger found when it refused a second run that the lock had let through.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SecondRun {
    /// The first run is still running.
    Running,
    /// The first run has ended.
    Ended,
}

words!(pub(crate) SecondRun { Running = "running", Ended = "ended" });
