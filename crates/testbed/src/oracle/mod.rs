//! An independent check of what happened. Its input is the ledger's rows, the effects that jobs wrote outside the
//! ledger, the timetable, and what was recorded from outside meanwhile. It shares no code with the product.

mod alarms;
mod history;
mod invariants;
mod locks;
mod trail;
mod verdict;
mod witness;

pub use history::{Attempt, History, Row, Timetable};
pub use verdict::{Sights, Verdict};
pub use witness::{Change, LockAct, LockEvent, LockTerms, ReplicaProcess, Witness};

use std::fmt;
use std::time::Duration;

/// The result of the check.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// Every violation of an invariant.
    pub breaches: Vec<Breach>,
    /// What was counted.
    pub counts: Counts,
}

/// One invariant that does not hold, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Which invariant.
    pub invariant: &'static str,
    /// Where, and the values that show it.
    pub what: String,
}

/// Counts of a history. They show whether it contains enough to prove anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Firings that the timetable requires.
    pub due: usize,
    /// Rows in the ledger.
    pub rows: usize,
    /// Runs that were started, counted outside.
    pub starts: usize,
    /// Attempts beyond the first: takeovers and retries.
    pub repeats: usize,
    /// Starts without an attempt in the ledger, and second starts of one attempt.
    pub doubled: usize,
    /// Firings without a row.
    pub missing: usize,
    /// Runs that another replica took over because the owner was gone.
    pub takeovers: usize,
    /// The longest time from the end of all faults until every firing that was due by then had its row.
    pub slowest_recovery: Option<Duration>,
}

impl History {
    /// Checks every invariant.
    #[must_use]
    pub fn judge(&self) -> Judgement {
        let mut judgement = Judgement { counts: self.counts(), ..Judgement::default() };
        for invariant in invariants::ALL {
            invariant(self, &mut judgement);
        }
        judgement
    }
}

impl Judgement {
    fn breach(&mut self, invariant: &'static str, what: impl fmt::Display) {
        self.breaches.push(Breach { invariant, what: what.to_string() });
    }

    /// Panics with every breach, if there is one.
    ///
    /// # Panics
    /// When an invariant does not hold.
    #[track_caller]
    pub fn assert_clean(&self) {
        let text: Vec<_> =
            self.breaches.iter().map(|breach| format!("{}: {}", breach.invariant, breach.what)).collect();
        assert!(text.is_empty(), "{} breaches:\n{}", text.len(), text.join("\n"));
    }
}
