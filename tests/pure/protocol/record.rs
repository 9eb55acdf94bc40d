//! What the protocol itself does not know: the history that its promises are about.

use std::collections::BTreeSet;

use super::ledger::{Firing, Run, State};

/// Something that a single step did and must not have done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Breach {
    TerminalChanged,
    ForeignEnd,
    VoidLicence,
    WrongAnswer,
    SweptThoughMoved,
    CameBack,
    OpenRowRemoved,
    ClaimedWhilePaused,
    ClaimedAfterCancel,
    Interleaved,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Record {
    /// Claims that took effect, in their order.
    pub(crate) licensed: Vec<Run>,
    /// Runs that began; sorted, for their order makes no difference.
    pub(crate) started: Vec<Run>,
    /// Effects committed in the ledger's database, in their order.
    pub(crate) effects: Vec<Run>,
    /// How runs were ended, by whomever.
    ended: BTreeSet<(Run, State)>,
    /// Firings whose row retention has removed.
    pub(crate) removed: BTreeSet<Firing>,
    breaches: BTreeSet<Breach>,
}

impl Record {
    pub(crate) fn start(&mut self, run: Run) {
        self.started.push(run);
        self.started.sort_unstable();
    }

    pub(crate) fn end(&mut self, run: Run, state: State) {
        self.ended.insert((run, state));
    }

    /// Whether the run was ended like that. A requeue whose firing was to be cancelled cancels it.
    pub(crate) fn has_ended(&self, run: Run, state: State) -> bool {
        self.ended.contains(&(run, state))
            || state.is_queued() && self.ended.contains(&(run, State::Cancelled))
    }

    pub(crate) fn breach(&mut self, breach: Breach) {
        self.breaches.insert(breach);
    }

    pub(crate) fn is_free_of(&self, breach: Breach) -> bool {
        !self.breaches.contains(&breach)
    }
}
