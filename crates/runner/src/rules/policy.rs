//! The choices that a job makes, and what each of them means.

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

words!(pub Overlap { Skip = "skip", Queue = "queue", Replace = "replace", Allow = "allow" });
words!(pub Guard { Both = "both", Ledger = "ledger", Lock = "lock", None = "none" });
words!(pub OnUnavailable { LedgerOnly = "ledger_only", Skip = "skip" });

impl Overlap {
    /// Whether no two runs of a job and shard may be running at the same time. If so, they share one lock and
    /// the ledger refuses a second row that is running.
    #[must_use]
    pub const fn is_exclusive(self) -> bool {
        match self {
            Self::Skip | Self::Queue | Self::Replace => true,
            Self::Allow => false,
        }
    }

    /// Whether a firing of the schedule that meets a run of its job is recorded as skipped.
    #[must_use]
    pub const fn skips(self) -> bool {
        match self {
            Self::Skip => true,
            Self::Queue | Self::Replace | Self::Allow => false,
        }
    }
}

impl Guard {
    /// Whether a run needs the lock.
    #[must_use]
    pub const fn takes_the_lock(self) -> bool {
        match self {
            Self::Both | Self::Lock => true,
            Self::Ledger | Self::None => false,
        }
    }

    /// Whether the row decides who runs. If not, a missing row is no gap.
    #[must_use]
    pub const fn is_decided_by_the_row(self) -> bool {
        match self {
            Self::Both | Self::Ledger => true,
            Self::Lock | Self::None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_allow_lets_runs_of_a_job_overlap_and_only_skip_skips() {
        let all = [Overlap::Skip, Overlap::Queue, Overlap::Replace, Overlap::Allow];
        assert_eq!(all.map(Overlap::is_exclusive), [true, true, true, false]);
        assert_eq!(all.map(Overlap::skips), [true, false, false, false]);
    }

    #[test]
    fn a_guard_says_which_layers_stand_before_a_run() {
        let all = [Guard::Both, Guard::Ledger, Guard::Lock, Guard::None];
        assert_eq!(all.map(Guard::takes_the_lock), [true, false, true, false]);
        assert_eq!(all.map(Guard::is_decided_by_the_row), [true, true, false, false]);
    }
}
