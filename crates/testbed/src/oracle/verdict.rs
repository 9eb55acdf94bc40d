//! The verdict: passed, failed, or inconclusive.

use std::fmt;

use super::Judgement;

/// How often each kind of trouble occurred in a run under faults, counted from log lines and rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sights {
    /// Runs that another replica took over because the owner was gone.
    pub takeovers: usize,
    /// Results that came after another owner had taken over, and were refused.
    pub stale: usize,
    /// Requests to the ledger whose answer never came.
    pub unknown: usize,
    /// Second runs that the lock allowed and the ledger refused.
    pub overlaps: usize,
}

/// What a run under faults proves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every invariant held, and every kind of trouble occurred.
    Passed,
    /// An invariant does not hold.
    Failed,
    /// Every invariant held, but these kinds of trouble never occurred.
    Inconclusive(Vec<&'static str>),
}

impl Sights {
    /// The kinds of trouble that never occurred. Without them the run proves nothing about them.
    #[must_use]
    pub fn lacks(&self) -> Vec<&'static str> {
        let Self { takeovers, stale, unknown, overlaps } = *self;
        let kinds = [
            ("takeover", takeovers),
            ("stale result", stale),
            ("unknown outcome", unknown),
            ("refused overlap", overlaps),
        ];
        kinds.into_iter().filter(|(_, count)| *count == 0).map(|(kind, _)| kind).collect()
    }
}

impl Judgement {
    /// The verdict, for a run in which this trouble occurred.
    #[must_use]
    pub fn verdict(&self, met: &Sights) -> Verdict {
        match met.lacks() {
            _ if !self.breaches.is_empty() => Verdict::Failed,
            lacks if !lacks.is_empty() => Verdict::Inconclusive(lacks),
            _ => Verdict::Passed,
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => f.write_str("passed"),
            Self::Failed => f.write_str("failed"),
            Self::Inconclusive(lacks) => write!(f, "inconclusive: no {}", lacks.join(", no ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Breach;
    use super::*;

    #[test]
    fn a_run_that_missed_one_kind_of_trouble_is_inconclusive_and_names_it() {
        let met = Sights { takeovers: 1, stale: 1, unknown: 1, overlaps: 1 };
        let clean = Judgement::default();
        assert_eq!(clean.verdict(&met), Verdict::Passed);
        for (lacking, kind) in [
            (Sights { takeovers: 0, ..met }, "takeover"),
            (Sights { stale: 0, ..met }, "stale result"),
            (Sights { unknown: 0, ..met }, "unknown outcome"),
            (Sights { overlaps: 0, ..met }, "refused overlap"),
        ] {
            assert_eq!(clean.verdict(&lacking), Verdict::Inconclusive(vec![kind]));
            assert!(clean.verdict(&lacking).to_string().contains(kind));
        }
    }

    #[test]
    fn a_breach_is_a_failure_however_little_was_met() {
        let breach = Breach { invariant: "one row per firing", what: String::new() };
        let judgement = Judgement { breaches: vec![breach], ..Judgement::default() };
        assert_eq!(judgement.verdict(&Sights::default()), Verdict::Failed);
    }
}
