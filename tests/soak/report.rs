//! What came of it, as a table.

use std::fmt;
use std::ops::AddAssign;
use std::time::Duration;

use testbed::oracle::Judgement;

use crate::fault::Faults;

/// What the replicas said of the faults they met.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    /// Claims and settles whose answer never came.
    pub(crate) unknown: usize,
    /// Results that came after someone had taken over.
    pub(crate) stale: usize,
    /// Second runs that the lock let through and the ledger refused.
    pub(crate) caught: usize,
    /// Replies that the network swallowed.
    pub(crate) swallowed: usize,
}

impl Evidence {
    pub(crate) fn see(&mut self, line: &str) {
        self.unknown += usize::from(line.contains("without an answer"));
        self.stale += usize::from(line.contains("its result is void"));
        self.caught += usize::from(line.contains("the ledger refused it"));
    }
}

impl AddAssign for Evidence {
    fn add_assign(&mut self, other: Self) {
        self.unknown += other.unknown;
        self.stale += other.stale;
        self.caught += other.caught;
        self.swallowed += other.swallowed;
    }
}

/// One run under faults.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) seed: u64,
    pub(crate) span: Duration,
    pub(crate) faults: Faults,
    pub(crate) recovery: Duration,
    pub(crate) evidence: Evidence,
    pub(crate) judgement: Judgement,
}

impl Report {
    /// Panics when the rows of what was due at the heal came too late.
    #[track_caller]
    pub(crate) fn assert_recovered(&self, bound: Duration) {
        assert!(self.recovery <= bound, "recovered after {:?}, more than {bound:?}", self.recovery);
    }

    /// Panics when the run met too little to prove anything.
    #[track_caller]
    pub(crate) fn assert_not_vacuous(&self) {
        let Evidence { unknown, stale, swallowed, .. } = self.evidence;
        let repeats = self.judgement.counts.repeats;
        assert!(
            unknown > 0 && stale > 0 && swallowed > 0 && repeats > 0,
            "inconclusive: unknown outcomes {unknown}, stale results {stale}, swallowed replies {swallowed}, takeovers {repeats}"
        );
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.judgement.counts;
        let rows: [(&str, String); 13] = [
            ("seed", self.seed.to_string()),
            ("faults for", format!("{:?}", self.span)),
            ("faults", self.faults.to_string()),
            ("firings due", counts.due.to_string()),
            ("rows", counts.rows.to_string()),
            ("runs started", counts.starts.to_string()),
            ("takeovers and retries", counts.repeats.to_string()),
            ("unknown outcomes", self.evidence.unknown.to_string()),
            ("stale results refused", self.evidence.stale.to_string()),
            ("second runs refused", self.evidence.caught.to_string()),
            ("doubled", counts.doubled.to_string()),
            ("missing", counts.missing.to_string()),
            ("recovered after", format!("{:.1?}", self.recovery)),
        ];
        writeln!(f)?;
        rows.iter().try_for_each(|(what, value)| writeln!(f, "{what:<24}{value}"))
    }
}
