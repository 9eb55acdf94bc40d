//! What becomes of a run that ended without a result of its own.

use std::time::Duration;

use super::ending::Ending;
use crate::firing::{Delivery, Reason, State};

/// A run that nobody finishes: its owner has vanished, or had to stop it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostRun {
    /// What the job wants.
    pub delivery: Delivery,
    /// How often runs of this firing have crashed before.
    pub crashes: u32,
    /// More crashes than this end the firing.
    pub max_crashes: u32,
    /// Whether this loss is a crash. A drain is none.
    pub crashed: bool,
    /// Whether someone had asked for the run to stop.
    pub cancel_requested: bool,
}

/// Where its firing goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LostFate {
    /// It ends as lost: it must not run a second time.
    Lost,
    /// It ends as failed: it takes its replicas down, or seems to.
    CrashLoop,
    /// It ends as cancelled, as someone had asked.
    Cancelled,
    /// It goes back into the queue.
    Again,
}

impl LostRun {
    /// Where the firing goes. A firing that may run only once is lost, whatever else is true of it.
    #[must_use]
    pub const fn fate(self) -> LostFate {
        match self.delivery {
            Delivery::AtMostOnce => LostFate::Lost,
            Delivery::AtLeastOnce if self.crashed && self.crashes >= self.max_crashes => LostFate::CrashLoop,
            Delivery::AtLeastOnce if self.cancel_requested => LostFate::Cancelled,
            Delivery::AtLeastOnce => LostFate::Again,
        }
    }
}

impl LostFate {
    /// The end of a run whose owner has vanished. `expires_in` is how long its firing may wait for another.
    #[must_use]
    pub const fn of_vanished_owner(self, expires_in: Duration) -> Ending {
        match self {
            Self::Lost => Ending::Terminal { state: State::Lost, reason: Some(Reason::OwnerLost) },
            Self::CrashLoop => Ending::Terminal { state: State::Failed, reason: Some(Reason::CrashLoop) },
            Self::Cancelled => Ending::Terminal { state: State::Cancelled, reason: None },
            Self::Again => Ending::Requeue { reason: Reason::OwnerLost, due_in: Duration::ZERO, expires_in },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: LostRun = LostRun {
        delivery: Delivery::AtLeastOnce,
        crashes: 0,
        max_crashes: 3,
        crashed: true,
        cancel_requested: false,
    };

    #[test]
    fn a_firing_that_may_run_again_does_so_until_it_has_crashed_too_often() {
        let fate = |crashes| LostRun { crashes, ..LOST }.fate();
        assert_eq!(
            [0, 1, 2, 3, 4].map(fate),
            [LostFate::Again, LostFate::Again, LostFate::Again, LostFate::CrashLoop, LostFate::CrashLoop]
        );
    }

    #[test]
    fn a_loss_that_is_no_crash_never_ends_a_firing_as_a_crash_loop() {
        assert_eq!(LostRun { crashes: 9, crashed: false, ..LOST }.fate(), LostFate::Again);
    }

    #[test]
    fn a_firing_that_may_run_only_once_is_lost_whatever_else_is_true_of_it() {
        let once = LostRun { delivery: Delivery::AtMostOnce, crashes: 9, cancel_requested: true, ..LOST };
        assert_eq!(once.fate(), LostFate::Lost);
    }

    #[test]
    fn a_wish_to_cancel_ends_the_firing_unless_it_is_a_crash_loop() {
        let asked = LostRun { cancel_requested: true, ..LOST };
        assert_eq!(asked.fate(), LostFate::Cancelled);
        assert_eq!(LostRun { crashes: 3, ..asked }.fate(), LostFate::CrashLoop);
    }

    #[test]
    fn the_row_of_a_vanished_owner_says_why() {
        let hour = Duration::from_secs(3600);
        let words = |fate: LostFate| fate.of_vanished_owner(hour).words();
        assert_eq!(words(LostFate::Lost), (State::Lost, Some(Reason::OwnerLost)));
        assert_eq!(words(LostFate::CrashLoop), (State::Failed, Some(Reason::CrashLoop)));
        assert_eq!(words(LostFate::Cancelled), (State::Cancelled, None));
        assert_eq!(words(LostFate::Again), (State::Queued, Some(Reason::OwnerLost)));
        let again = LostFate::Again.of_vanished_owner(hour);
        let due_now = Ending::Requeue { reason: Reason::OwnerLost, due_in: Duration::ZERO, expires_in: hour };
        assert_eq!(again, due_now);
    }
}
