//! An independent judge of what happened: from the rows of the ledger, the effects that jobs left
//! outside it, the timetable, and what witnesses saw meanwhile. It shares no code with the product.

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

/// What the judge found.
#[derive(Clone, Debug, Default)]
pub struct Judgement {
    /// Every breach of an invariant, in words.
    pub breaches: Vec<Breach>,
    /// What was counted on the way.
    pub counts: Counts,
}

/// One invariant that does not hold, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Breach {
    /// Which invariant.
    pub invariant: &'static str,
    /// Where, with what was seen.
    pub what: String,
}

/// What a history holds, to tell a thorough one from an empty one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Firings the timetable asks for.
    pub due: usize,
    /// Rows in the ledger.
    pub rows: usize,
    /// Runs that were started, counted outside.
    pub starts: usize,
    /// Attempts beyond the first: takeovers and retries.
    pub repeats: usize,
    /// Starts that no attempt of the ledger licenses, and second starts of one attempt.
    pub doubled: usize,
    /// Firings without a row.
    pub missing: usize,
    /// Runs that another replica took over from an owner that was gone.
    pub takeovers: usize,
    /// From a heal to the last row of what was due by then, in the slowest case.
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
