//! Why a firing was not put into the queue.

use std::time::Duration;

use super::view::{Found, View};
use crate::firing::{Delivery, Firing, FiringId, Reason};

/// The wish to queue a firing.
#[derive(Clone, Debug)]
pub struct Enqueue {
    /// Which firing.
    pub firing: Firing,
    /// Why it waits.
    pub reason: Reason,
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

/// Why no row was written, as of `view`. None if nothing forbids it any more, so that it may be tried again.
#[must_use]
pub fn why_not_enqueued(view: &View, enqueue: &Enqueue) -> Option<Enqueued> {
    if let Some(own) = &view.own {
        return Some(Enqueued::AlreadyThere(own.found.clone()));
    }
    if view.job.is_none_or(|job| job.pruned || job.paused) {
        return Some(Enqueued::Refused);
    }
    (enqueue.reason == Reason::Overlap && view.one_waits).then_some(Enqueued::WaitingAlready)
}
