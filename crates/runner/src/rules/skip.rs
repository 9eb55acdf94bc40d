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

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;
    use crate::firing::{FiringId, JobName, Origin};
    use crate::rules::{Found, KnownJob, OwnRow};

    fn found(state: State) -> Found {
        let scheduled_at = DateTime::UNIX_EPOCH;
        Found { id: FiringId(1), scheduled_at, state: state.into(), reason: None, owner: None }
    }

    fn skip(only_while_running: bool) -> Skip {
        let firing = Firing {
            job: JobName::new("job").unwrap(),
            scheduled_at: DateTime::UNIX_EPOCH,
            shard: 0,
            trigger_key: String::new(),
            origin: Origin::Schedule,
        };
        Skip { firing, reason: Reason::Overlap, detail: None, only_while_running }
    }

    #[test]
    fn a_row_is_told_before_a_refusal_and_a_refusal_before_an_idle_job() {
        let running = found(State::Running);
        let own = OwnRow { found: running.clone(), claim_id: None, won: None, due_at: None };
        let mut view =
            View { now: DateTime::UNIX_EPOCH, job: None, own: Some(own), running: None, one_waits: false };
        assert_eq!(why_not_skipped(&view, &skip(true)), Some(Skipped::AlreadyThere(running.state.clone())));
        view.own = None;
        assert_eq!(why_not_skipped(&view, &skip(true)), Some(Skipped::Refused));
        view.job = Some(KnownJob { paused: true, pruned: true });
        assert_eq!(why_not_skipped(&view, &skip(true)), Some(Skipped::Refused));
        view.job = Some(KnownJob { paused: true, pruned: false });
        assert_eq!(why_not_skipped(&view, &skip(true)), Some(Skipped::NothingRunning));
        assert_eq!(why_not_skipped(&view, &skip(false)), None);
        view.running = Some(running);
        assert_eq!(why_not_skipped(&view, &skip(true)), None);
    }
}
