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
