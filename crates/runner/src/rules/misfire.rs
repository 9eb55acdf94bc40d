//! Misfires: what becomes of due moments that nobody ran.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::firing::words;

/// What happens to due moments that nobody ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Misfire {
    /// The newest runs, the older are recorded as skipped.
    #[default]
    Latest,
    /// All run, oldest first, at most `max_catchup`.
    All,
    /// All are recorded as skipped.
    Skip,
}

words!(pub Misfire { Latest = "latest", All = "all", Skip = "skip" });

/// A due moment that has no row in the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Missed {
    /// The nominal instant.
    pub scheduled_at: DateTime<Utc>,
    /// When it was due: the nominal instant and its jitter. Its age counts from here.
    pub due_at: DateTime<Utc>,
}

/// What a job wants done about its missed moments.
#[derive(Clone, Copy, Debug)]
pub struct MisfireRule {
    /// The lease of the job: whoever took a firing may still work on it for that long.
    pub ttl: Duration,
    /// Moments older than this are skipped.
    pub start_deadline: Duration,
    /// Which of the others run.
    pub policy: Misfire,
    /// At most so many run under [`Misfire::All`].
    pub max_catchup: u32,
}

/// What becomes of a due moment that has no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It is queued and runs.
    Run,
    /// It is recorded as skipped.
    Skip,
}

/// Rules on the missed moments of one job, in the order of their nominal instants. `now` is the ledger's.
///
/// A moment that is less than two ttls old always runs. A fault has caused such a gap (a replica died between
/// lock and claim), not downtime, and no policy may lose a firing by it. The policy is for the older ones.
/// Under [`Misfire::Latest`] a young moment that runs is the latest one already.
#[must_use]
pub fn misfire_rulings(
    gaps: &[Missed],
    now: DateTime<Utc>,
    rule: &MisfireRule,
) -> Vec<(DateTime<Utc>, Ruling)> {
    let age = |gap: &Missed| now - gap.due_at;
    let is_young = |gap: &Missed| age(gap) < span(rule.ttl) * 2;
    let is_open = |gap: &Missed| !is_young(gap) && age(gap) <= span(rule.start_deadline);

    let mut gaps = gaps.to_vec();
    gaps.sort_by_key(|gap| gap.scheduled_at);
    let latest = gaps.iter().rfind(|gap| is_young(gap) || is_open(gap)).copied();
    let mut catchup = rule.max_catchup;
    gaps.iter()
        .map(|gap| {
            let runs = is_young(gap)
                || is_open(gap)
                    && match rule.policy {
                        Misfire::Skip => false,
                        Misfire::Latest => Some(*gap) == latest,
                        Misfire::All => {
                            let room = catchup > 0;
                            catchup = catchup.saturating_sub(1);
                            room
                        }
                    };
            (gap.scheduled_at, if runs { Ruling::Run } else { Ruling::Skip })
        })
        .collect()
}

/// Chrono's span, far beyond any schedule where chrono has none so long.
fn span(duration: Duration) -> TimeDelta {
    const AGES: TimeDelta = TimeDelta::days(1_000_000);
    TimeDelta::from_std(duration).map_or(AGES, |span| span.min(AGES))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const RULE: MisfireRule = MisfireRule {
        ttl: Duration::from_secs(30),
        start_deadline: Duration::from_secs(600),
        policy: Misfire::Latest,
        max_catchup: 100,
    };

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000, 0).unwrap()
    }

    /// Gaps that were due so many seconds ago.
    fn gaps(ages: &[i64]) -> Vec<Missed> {
        ages.iter()
            .map(|age| now() - TimeDelta::seconds(*age))
            .map(|at| Missed { scheduled_at: at, due_at: at })
            .collect()
    }

    /// The ages of those that run.
    fn run(gaps: &[Missed], rule: MisfireRule) -> Vec<i64> {
        let judged = misfire_rulings(gaps, now(), &rule);
        assert_eq!(judged.len(), gaps.len(), "every gap is judged");
        let runs = judged.iter().filter(|(_, verdict)| *verdict == Ruling::Run);
        runs.map(|(at, _)| (now() - *at).num_seconds()).collect()
    }

    #[test]
    fn after_a_downtime_only_the_newest_runs() {
        assert_eq!(run(&gaps(&[500, 400, 300, 200, 100]), RULE), [100]);
    }

    #[test]
    fn all_of_them_run_oldest_first_and_no_more_than_wanted() {
        let rule = MisfireRule { policy: Misfire::All, max_catchup: 3, ..RULE };
        assert_eq!(run(&gaps(&[100, 200, 300, 400, 500]), rule), [500, 400, 300]);
        assert_eq!(run(&gaps(&[500, 400]), rule), [500, 400]);
    }

    #[test]
    fn none_of_them_run_under_skip() {
        let rule = MisfireRule { policy: Misfire::Skip, ..RULE };
        assert_eq!(run(&gaps(&[500, 400]), rule), [] as [i64; 0]);
    }

    #[test]
    fn older_than_the_start_deadline_is_skipped_under_every_policy() {
        for policy in [Misfire::Latest, Misfire::All, Misfire::Skip] {
            let rule = MisfireRule { policy, ..RULE };
            assert_eq!(run(&gaps(&[3600, 601]), rule), [] as [i64; 0], "{policy}");
        }
        assert_eq!(run(&gaps(&[601, 600]), RULE), [600]);
    }

    #[test]
    fn a_young_gap_is_a_fault_and_runs_under_every_policy() {
        for policy in [Misfire::Latest, Misfire::All, Misfire::Skip] {
            let rule = MisfireRule { policy, max_catchup: 0, ..RULE };
            assert_eq!(run(&gaps(&[59, 45, 31]), rule), [59, 45, 31], "{policy}");
        }
        let hasty = MisfireRule { start_deadline: Duration::ZERO, policy: Misfire::Skip, ..RULE };
        assert_eq!(run(&gaps(&[59]), hasty), [59]);
    }

    #[test]
    fn a_gap_of_two_ttls_is_no_longer_young() {
        let rule = MisfireRule { policy: Misfire::Skip, ..RULE };
        assert_eq!(run(&gaps(&[60]), rule), [] as [i64; 0]);
    }

    #[test]
    fn a_young_gap_that_runs_is_the_latest() {
        assert_eq!(run(&gaps(&[300, 200, 40]), RULE), [40]);
    }

    #[test]
    fn age_counts_from_the_jittered_moment() {
        let mut late = gaps(&[70]);
        late[0].due_at += TimeDelta::seconds(20);
        let rule = MisfireRule { policy: Misfire::Skip, ..RULE };
        assert_eq!(run(&late, rule), [70]);
    }

    proptest! {
        #[test]
        fn every_gap_gets_one_verdict_in_order(
            ages in proptest::collection::btree_set(0..2000_i64, 0..50),
            policy in proptest::sample::select(&[Misfire::Latest, Misfire::All, Misfire::Skip][..]),
            max_catchup in 0..10_u32,
        ) {
            let ages: Vec<i64> = ages.into_iter().collect();
            let judged = misfire_rulings(&gaps(&ages), now(), &MisfireRule { policy, max_catchup, ..RULE });
            prop_assert!(judged.is_sorted_by(|a, b| a.0 < b.0));
            prop_assert_eq!(judged.len(), ages.len());
            let young = ages.iter().filter(|age| **age < 60).count();
            let runs = judged.iter().filter(|(_, verdict)| *verdict == Ruling::Run).count();
            let most = match policy {
                Misfire::Skip => 0,
                Misfire::Latest => usize::from(young == 0),
                Misfire::All => max_catchup as usize,
            };
            prop_assert!((young..=young + most).contains(&runs), "{} of which {} young", runs, young);
        }
    }
}
