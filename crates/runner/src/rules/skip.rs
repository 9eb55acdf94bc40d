//! Why a firing was not recorded as skipped.

use super::view::View;
use crate::firing::{Firing, Reason, State, Word};

/// The wish to record that a firing did not run.
#[derive(Clone, Debug)]
pub struct Skip {
    /// Which firing.
    pub firing: Firing,
    /// Why it did not run.
    pub reason: Reason,
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
    AlreadyThere(Word<State>),
    /// Nothing runs that it could overlap with.
    NothingRunning,
    /// The ledger does not take rows for this instant: pruned, or an unknown job.
    Refused,
}

/// Why no row was written, as of `view`. None if nothing forbids it any more, so that it may be tried again.
#[must_use]
pub fn why_not_skipped(view: &View, skip: &Skip) -> Option<Skipped> {
    if let Some(own) = &view.own {
        return Some(Skipped::AlreadyThere(own.found.state.clone()));
    }
    if view.job.is_none_or(|job| job.pruned) {
        return Some(Skipped::Refused);
    }
    (skip.only_while_running && view.running.is_none()).then_some(Skipped::NothingRunning)
}
