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

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::firing::{FiringId, JobName, Origin, State};
    use crate::rules::{Found, KnownJob, OwnRow};

    fn found(state: State) -> Found {
        let scheduled_at = DateTime::UNIX_EPOCH;
        Found { id: FiringId(1), scheduled_at, state: state.into(), reason: None, owner: None }
    }

    fn enqueue(reason: Reason) -> Enqueue {
        let firing = Firing {
            job: JobName::new("job").unwrap(),
            scheduled_at: DateTime::UNIX_EPOCH,
            shard: 0,
            trigger_key: String::new(),
            origin: Origin::Manual,
        };
        let (delivery, due_in, expires_in) = (Delivery::AtLeastOnce, Duration::ZERO, Duration::ZERO);
        Enqueue { firing, reason, exclusive: true, delivery, due_in, expires_in }
    }

    #[test]
    fn a_row_is_told_before_a_refusal_and_a_refusal_before_one_that_waits() {
        let there = found(State::Queued);
        let own = OwnRow { found: there.clone(), claim_id: None, won: None, due_at: None };
        let mut view =
            View { now: DateTime::UNIX_EPOCH, job: None, own: Some(own), running: None, one_waits: true };
        let told = |view: &View, reason| why_not_enqueued(view, &enqueue(reason));
        assert_eq!(told(&view, Reason::Overlap), Some(Enqueued::AlreadyThere(there)));
        view.own = None;
        for job in [None, Some((true, false)), Some((false, true))] {
            view.job = job.map(|(paused, pruned)| KnownJob { paused, pruned });
            assert_eq!(told(&view, Reason::Overlap), Some(Enqueued::Refused), "{job:?}");
        }
        view.job = Some(KnownJob { paused: false, pruned: false });
        assert_eq!(told(&view, Reason::Overlap), Some(Enqueued::WaitingAlready));
        assert_eq!(told(&view, Reason::Trigger), None);
        view.one_waits = false;
        assert_eq!(told(&view, Reason::Overlap), None);
    }
}
