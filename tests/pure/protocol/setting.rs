//! What one exploration is about: whose job, how many workers, and what the adversary may do.

use super::conditions::Condition;
use super::properties as p;

/// Where the job's effect goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Into the ledger's own database, in one transaction with the settle.
    Transaction,
    /// Anywhere else, from the moment the run begins.
    External,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    AtLeastOnce,
    AtMostOnce,
}

/// The bounds of an exploration. Within them every interleaving is tried; a number is how often
/// something may happen in one history.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    pub(crate) name: &'static str,
    /// How many firings the one job has, and whether a run of one keeps out a run of the others.
    pub(crate) firings: u8,
    pub(crate) effect: Effect,
    pub(crate) delivery: Delivery,
    pub(crate) max_attempts: u8,
    pub(crate) max_crashes: u8,
    pub(crate) workers: usize,
    /// How many passages begin, each with a claim id of its own.
    pub(crate) passages: u8,
    /// How many claims succeed.
    pub(crate) fences: u8,
    /// How many answers are lost, whether or not, and whenever, the write itself happens.
    pub(crate) unanswered: u8,
    /// How many workers vanish.
    pub(crate) deaths: u8,
    /// How often a run's lease is moved.
    pub(crate) heartbeats: u8,
    /// Sweeps act on what a sweeper saw before, not on what is there now.
    pub(crate) stale_sweeps: bool,
    /// Somebody asks for the firing to be cancelled.
    pub(crate) cancels: bool,
    /// How often the job is paused; it may be resumed each time.
    pub(crate) pauses: u8,
    /// Retention passes over the firings.
    pub(crate) prunes: bool,
    /// Rows also come from the reconciliation and from skips, and expire in the queue.
    pub(crate) queues: bool,
    /// The condition taken out of the protocol, if it is to be shown what it is good for.
    pub(crate) without: Option<Condition>,
    /// What must be seen on the way, or the exploration proves nothing.
    pub(crate) shows: &'static [&'static str],
}

impl Setting {
    pub(crate) fn has(&self, condition: Condition) -> bool {
        self.without != Some(condition)
    }

    pub(crate) fn without(self, condition: Condition) -> Self {
        Self { without: Some(condition), ..self }
    }
}

/// What the settings have in common.
const BASE: Setting = Setting {
    name: "",
    firings: 1,
    effect: Effect::Transaction,
    delivery: Delivery::AtLeastOnce,
    max_attempts: 2,
    max_crashes: 1,
    workers: 2,
    passages: 3,
    fences: 3,
    unanswered: 1,
    deaths: 0,
    heartbeats: 0,
    stale_sweeps: false,
    cancels: false,
    pauses: 0,
    prunes: false,
    queues: false,
    without: None,
    shows: &[],
};

/// What any setting with takeovers and lost answers shows.
const OFTEN: &[&str] =
    &[p::TAKEN_OVER, p::FENCED, p::UNKNOWN_MINE, p::UNKNOWN_NOT_MINE, p::LANDS_LATE, p::CRASH_LOOP];

pub(crate) const SETTINGS: &[Setting] = &[
    Setting { name: "transaction", deaths: 1, shows: OFTEN, ..BASE },
    Setting { name: "unknowns", unanswered: 2, max_attempts: 1, fences: 2, shows: OFTEN, ..BASE },
    Setting { name: "three workers", workers: 3, max_attempts: 1, shows: OFTEN, ..BASE },
    Setting { name: "external", effect: Effect::External, shows: OFTEN, ..BASE },
    Setting {
        name: "at most once",
        effect: Effect::External,
        delivery: Delivery::AtMostOnce,
        max_attempts: 1,
        unanswered: 2,
        cancels: true,
        shows: &[
            p::FENCED,
            p::UNKNOWN_MINE,
            p::UNKNOWN_NOT_MINE,
            p::LANDS_LATE,
            p::LATE_RESULT,
            p::CANCEL_ENDS,
        ],
        ..BASE
    },
    Setting {
        name: "at most once, transaction",
        delivery: Delivery::AtMostOnce,
        max_attempts: 1,
        unanswered: 2,
        cancels: true,
        shows: &[p::FENCED, p::UNKNOWN_MINE, p::LATE_RESULT],
        ..BASE
    },
    Setting {
        name: "cancel",
        effect: Effect::External,
        cancels: true,
        passages: 2,
        fences: 2,
        shows: &[p::TAKEN_OVER, p::FENCED, p::CANCEL_ENDS],
        ..BASE
    },
    Setting {
        name: "queue",
        queues: true,
        cancels: true,
        passages: 2,
        fences: 2,
        shows: &[p::TAKEN_OVER],
        ..BASE
    },
    Setting {
        name: "retention",
        queues: true,
        prunes: true,
        passages: 2,
        fences: 2,
        shows: &[p::PRUNE_REFUSED],
        ..BASE
    },
    Setting {
        name: "gate",
        firings: 2,
        prunes: true,
        pauses: 1,
        unanswered: 0,
        passages: 2,
        fences: 2,
        shows: &[p::PAUSE_REFUSED, p::PRUNE_REFUSED],
        ..BASE
    },
    Setting { name: "pause", pauses: 1, max_attempts: 1, shows: &[p::TAKEN_OVER, p::PAUSE_REFUSED], ..BASE },
    Setting {
        name: "sweeps",
        stale_sweeps: true,
        heartbeats: 1,
        passages: 2,
        fences: 2,
        shows: &[p::TAKEN_OVER],
        ..BASE
    },
    Setting {
        name: "overlap",
        firings: 2,
        max_attempts: 1,
        passages: 3,
        fences: 2,
        shows: &[p::TAKEN_OVER, p::FENCED, p::OVERLAP_REFUSED],
        ..BASE
    },
    Setting {
        name: "overlap, long",
        firings: 2,
        unanswered: 0,
        max_attempts: 1,
        shows: &[p::TAKEN_OVER, p::FENCED, p::OVERLAP_REFUSED],
        ..BASE
    },
];
