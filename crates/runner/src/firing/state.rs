//! Where a firing stands, why it exists, and what happens when its owner is lost.

use super::words::words;

/// Why a firing exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Origin {
    /// The schedule asked for it.
    Schedule,
    /// The schedule asked for it and everybody missed it.
    CatchUp,
    /// A person or a program asked for it.
    Manual,
    /// A person asked for a range of instants.
    Backfill,
}

/// What happens to a firing whose owner is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// It runs again.
    #[default]
    AtLeastOnce,
    /// It ends as `lost`.
    AtMostOnce,
}

/// Where a firing stands in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Waits for an owner.
    Queued,
    /// Has an owner.
    Running,
    /// Ended well.
    Succeeded,
    /// Ended badly.
    Failed,
    /// Its owner vanished or was stopped, and it must not run again.
    Lost,
    /// Ended because someone asked for that.
    Cancelled,
    /// Never ran, for a reason.
    Skipped,
}

impl State {
    /// Whether nothing follows (but for the one late settle of `Lost`).
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Queued | Self::Running)
    }
}

words!(pub Origin { Schedule = "schedule", CatchUp = "catch_up", Manual = "manual", Backfill = "backfill" });
words!(pub Delivery { AtLeastOnce = "at_least_once", AtMostOnce = "at_most_once" });
words!(pub State {
    Queued = "queued",
    Running = "running",
    Succeeded = "succeeded",
    Failed = "failed",
    Lost = "lost",
    Cancelled = "cancelled",
    Skipped = "skipped",
});
