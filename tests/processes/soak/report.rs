//! What came of it, as a table.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use testbed::oracle::{Judgement, Sights, Verdict};

use super::fault::Faults;

/// What the replicas said of the faults they met.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    /// Claims and settles whose answer never came.
    pub(crate) unknown: usize,
    /// Results that came after someone had taken over.
    pub(crate) stale: usize,
    /// Second runs that the lock let through and the ledger refused.
    pub(crate) overlaps: usize,
    /// Replies that the network swallowed.
    pub(crate) swallowed: usize,
}

impl Evidence {
    pub(crate) fn see(&mut self, line: &str) {
        self.unknown += usize::from(line.contains("without an answer"));
        self.stale += usize::from(line.contains("its result is void"));
        self.overlaps += usize::from(line.contains("the ledger refused it"));
    }
}

impl AddAssign for Evidence {
    fn add_assign(&mut self, other: Self) {
        self.unknown += other.unknown;
        self.stale += other.stale;
        self.overlaps += other.overlaps;
        self.swallowed += other.swallowed;
    }
}

/// One run under faults.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) span: Duration,
    pub(crate) faults: Faults,
    pub(crate) evidence: Evidence,
    pub(crate) sights: Sights,
    /// How many moves of locks and changes of rows the judge has looked at.
    pub(crate) watched: (usize, usize),
    pub(crate) judgement: Judgement,
}

impl Report {
    pub(crate) fn verdict(&self) -> Verdict {
        self.judgement.verdict(&self.sights)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (counts, met) = (self.judgement.counts, self.sights);
        let recovery = counts.slowest_recovery.unwrap_or_default();
        let rows: [(&str, String); 17] = [
            ("seed", self.seed.to_string()),
            ("under faults for", format!("{} s", self.span.as_secs())),
            ("faults", self.faults.to_string()),
            ("of these, failovers of Redis", self.faults.failovers().to_string()),
            ("replies lost on the way", self.evidence.swallowed.to_string()),
            ("firings due", counts.due.to_string()),
            ("rows", counts.rows.to_string()),
            ("runs started", counts.starts.to_string()),
            ("moves of locks, changes of rows", format!("{}, {}", self.watched.0, self.watched.1)),
            ("takeovers", met.takeovers.to_string()),
            ("stale results refused", met.stale.to_string()),
            ("unknown outcomes", met.unknown.to_string()),
            ("overlaps refused", met.overlaps.to_string()),
            ("**doubled**", format!("**{}**", counts.doubled)),
            ("**missing**", format!("**{}**", counts.missing)),
            ("slowest recovery", format!("{:.1} s", recovery.as_secs_f64())),
            ("verdict", self.verdict().to_string()),
        ];
        writeln!(f, "\n| {:<31} | |\n|{:-<33}|-|", "", "")?;
        rows.iter().try_for_each(|(what, value)| writeln!(f, "| {what:<31} | {value} |"))
    }
}
