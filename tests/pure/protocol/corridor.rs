//! One worker on its way through the corridor: where it stands, and what it remembers.

use super::conditions::Condition;
use super::ledger::{Claim, Fence, Ledger, Reason, Refusal, Run, Settlement, State};
use super::setting::{Delivery, Setting};

/// One passage: all its claims carry the same id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Passage {
    pub(crate) claim: Claim,
    /// A claim was sent whose answer never came.
    pub(crate) unsure: bool,
    /// The fence that the unanswered claim was to get. Only a broken protocol looks at it.
    pub(crate) expected: Fence,
}

/// What the owner of a run knows: the run, and the counts as its claim told them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Owned {
    pub(crate) run: Run,
    attempt: u8,
    crashes: u8,
}

impl Owned {
    /// What a claim that was won tells, with the row as it stands.
    pub(crate) fn new(ledger: &Ledger, run: Run) -> Self {
        let (attempt, crashes) = ledger.row(run.firing).map_or((1, 0), |row| (row.attempt, row.crashes));
        Self { run, attempt, crashes }
    }

    pub(crate) fn succeeded(&self) -> Settlement {
        Settlement { run: self.run, state: State::Succeeded, crashed: false }
    }

    pub(crate) fn cancelled(&self) -> Settlement {
        Settlement { run: self.run, state: State::Cancelled, crashed: false }
    }

    /// The job failed: again, if attempts are left.
    pub(crate) fn failed(&self, setting: &Setting) -> Settlement {
        let again = self.attempt.saturating_sub(self.crashes) < setting.max_attempts;
        let state = if again { State::Queued(Reason::Retry) } else { State::Failed(Reason::Error) };
        Settlement { run: self.run, state, crashed: false }
    }

    /// The executor stopped the run for a reason that is not the job's.
    pub(crate) fn interrupted(&self, setting: &Setting) -> Settlement {
        let state = match setting.delivery {
            Delivery::AtMostOnce if setting.has(Condition::DeliveryOfInterruption) => {
                State::Lost(Reason::Interrupted)
            }
            _ if self.crashes >= setting.max_crashes => State::Failed(Reason::CrashLoop),
            _ => State::Queued(Reason::Interrupted),
        };
        Settlement { run: self.run, state, crashed: true }
    }
}

/// Where a worker stands. Each step from one place to the next may take for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Worker {
    Idle,
    /// Through the gate, the row not yet written: only where the job's row is not kept locked.
    Gated(Passage, Option<Fence>),
    /// The claim got no row: about to read why.
    Looking(Passage),
    /// The claim got no answer: about to ask for it.
    Asking(Passage),
    /// The row was not there, or not yet: about to claim once more, under the same id.
    Again(Passage),
    /// An unanswered claim was found to be ours: about to send the heartbeat that makes it certain.
    Unsure(Passage, Owned),
    /// Ours; the job has not begun.
    Licensed(Owned),
    /// The job has begun.
    Working(Owned),
    /// The fence was checked, the effect not yet committed: only where that is not one transaction.
    Checked(Owned),
    /// About to record the result, for the first time or again.
    Settling(Settlement),
    /// The settle changed nothing: about to read whether an earlier one did.
    Finding(Settlement),
    /// The claim was refused.
    Refused(Refusal),
    /// The result was refused: somebody took over.
    Fenced,
}
