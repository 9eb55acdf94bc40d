//! How a run ends, as its row is to say.

use std::time::Duration;

use crate::firing::{Reason, State};

/// How a run ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// A terminal state.
    Terminal {
        /// `Succeeded`, `Failed`, `Lost` or `Cancelled`.
        state: State,
        /// Why, where the state alone does not say it.
        reason: Option<Reason>,
    },
    /// Back into the queue.
    Requeue {
        /// `retry` or `interrupted`.
        reason: Reason,
        /// From now, by the ledger's clock.
        due_in: Duration,
        /// From now, by the ledger's clock.
        expires_in: Duration,
    },
}

impl Ending {
    /// Whether the firing is over.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal { .. })
    }

    /// State and reason as rows, metrics and logs name them.
    #[must_use]
    pub const fn words(&self) -> (State, Option<Reason>) {
        match self {
            Self::Terminal { state, reason } => (*state, *reason),
            Self::Requeue { reason, .. } => (State::Queued, Some(*reason)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_firing_is_over_unless_it_goes_back_into_the_queue() {
        let ended = Ending::Terminal { state: State::Failed, reason: Some(Reason::Error) };
        let (due_in, expires_in) = (Duration::ZERO, Duration::from_secs(60));
        let again = Ending::Requeue { reason: Reason::Retry, due_in, expires_in };
        assert_eq!([ended.is_terminal(), again.is_terminal()], [true, false]);
        assert_eq!(ended.words(), (State::Failed, Some(Reason::Error)));
        assert_eq!(again.words(), (State::Queued, Some(Reason::Retry)));
    }
}
