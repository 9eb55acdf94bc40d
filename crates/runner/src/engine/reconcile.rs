//! Compares the timetable with the ledger and repairs the gaps, so that every due moment gets a row.
//!
//! There is a gap after a replica died between lock and claim, after an outage of the ledger, and after a time in
//! which no replica ran. One replica decides about it for all: the ledger accepts a decision only for the horizon
//! that it was made from. Nothing is claimed here. A firing that is to run is queued and takes the corridor.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tracing::{info, warn};

use super::backlog::{due, due_at, rows};
use super::job_set::JobSet;
use crate::config::JobSpec;
use crate::firing::{Reason, State};
use crate::ledger::{Decision, Gap, Gaps, Horizon, LedgerError, Question};
use crate::registry::BoundJob;
use crate::rules::{MisfireRule, Missed, misfire_rulings};
use crate::telemetry;

/// Without a gap the horizon is raised only when it lies this far back, which saves a write each time.
const RAISE_AFTER: TimeDelta = TimeDelta::minutes(1);
/// A horizon may be ahead of the ledger's clock by this, for two replicas estimate that clock.
const AHEAD: TimeDelta = TimeDelta::seconds(1);
/// A horizon that is lowered goes back by the start deadline, but by no more than this.
const MOST_BACK: Duration = Duration::from_secs(60 * 60);

/// Looks for gaps of `jobs` as of `now` (by the ledger's clock) and decides about them. Returns the jobs that the
/// ledger does not know, for example because it was restored from a backup, or lost rows in a failover.
///
/// # Errors
/// The first error, after the other jobs had their turn while the ledger `answers`. What was decided stays decided.
///
/// # Cancel safety
/// Safe to drop: a decision is one transaction. If it was not committed, it is made again.
pub(crate) async fn once(
    gaps: &dyn Gaps,
    jobs: &JobSet,
    now: DateTime<Utc>,
    answers: impl Fn() -> bool,
) -> Result<Vec<Arc<BoundJob>>, LedgerError> {
    let guarded = |spec: &JobSpec| spec.enabled && spec.guard.is_decided_by_the_row();
    let questions: Vec<Question> = jobs
        .iter()
        .filter(|job| guarded(&job.spec))
        .map(|job| Question { job: job.spec.name.to_string(), reach_back: job.spec.jitter })
        .collect();
    let mut unknown: BTreeSet<String> = questions.iter().map(|question| question.job.clone()).collect();
    let mut failed = None;
    for horizon in gaps.horizons(&questions).await? {
        unknown.remove(&horizon.job);
        let Some(job) = jobs.get(&horizon.job) else { continue };
        let Some(decision) = decide(&job.spec, &horizon, now) else { continue };
        match gaps.decide(&decision).await {
            Ok(true) => tell(&job.spec, &decision),
            Ok(false) => {}
            Err(error) if answers() => failed = failed.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    match failed {
        Some(error) => Err(error),
        None => Ok(unknown.iter().filter_map(|name| jobs.get(name).cloned()).collect()),
    }
}

/// What to do about the gaps of one job, if anything. Pure.
fn decide(spec: &JobSpec, horizon: &Horizon, now: DateTime<Utc>) -> Option<Decision> {
    let ttl = TimeDelta::from_std(spec.budget.ttl).ok()?;
    if horizon.decided_until > now + AHEAD {
        return Some(lower(spec, horizon, now - ttl));
    }
    let until = now - ttl;
    if until <= horizon.decided_until {
        return None;
    }
    let (instants, earlier) = due(spec, horizon, until, now);
    let there: BTreeSet<(DateTime<Utc>, u32)> = horizon.rows.iter().copied().collect();
    let missing = |instant: &DateTime<Utc>| (0..spec.shards).any(|shard| !there.contains(&(*instant, shard)));
    let missed: Vec<Missed> = instants
        .into_iter()
        .filter(missing)
        .map(|instant| Missed { scheduled_at: instant, due_at: due_at(spec, instant) })
        .collect();
    if missed.is_empty() && until - horizon.decided_until < RAISE_AFTER {
        return None;
    }
    let rule = MisfireRule {
        ttl: spec.budget.ttl,
        start_deadline: spec.start_deadline,
        policy: spec.misfire,
        max_catchup: spec.max_catchup,
    };
    let rows = rows(&misfire_rulings(&missed, now, &rule), earlier);
    let gaps =
        rows.into_iter()
            .flat_map(|(instant, run, detail)| {
                (0..spec.shards)
                    .filter(move |shard| !has_row(horizon, instant, *shard))
                    .map(move |shard| Gap { scheduled_at: instant, shard, run, detail: detail.clone() })
            })
            .collect();
    Some(Decision {
        job: horizon.job.clone(),
        decided_until: horizon.decided_until,
        until,
        exclusive: spec.overlap.is_exclusive(),
        delivery: spec.delivery,
        expires_in: spec.start_deadline.max(spec.budget.ttl.saturating_mul(2)),
        gaps,
    })
}

/// Takes back a horizon that a wrong clock has raised into the future. Otherwise no gap would be found until then.
///
/// What fell due while the clock was wrong may have no row. It lies within the start deadline if it may still run.
fn lower(spec: &JobSpec, horizon: &Horizon, until: DateTime<Utc>) -> Decision {
    let back = TimeDelta::from_std(spec.start_deadline.min(MOST_BACK)).unwrap_or(TimeDelta::zero());
    Decision {
        job: horizon.job.clone(),
        decided_until: horizon.decided_until,
        until: until - back,
        exclusive: spec.overlap.is_exclusive(),
        delivery: spec.delivery,
        expires_in: spec.start_deadline,
        gaps: Vec::new(),
    }
}

fn has_row(horizon: &Horizon, instant: DateTime<Utc>, shard: u32) -> bool {
    horizon.rows.contains(&(instant, shard))
}

fn tell(spec: &JobSpec, decision: &Decision) {
    let run = decision.gaps.iter().filter(|gap| gap.run).count();
    let missed = decision.gaps.len() - run;
    if run > 0 {
        info!(job = %spec.name, run, "found firings without a row; queued");
    }
    if missed > 0 {
        let detail = decision.gaps.iter().find_map(|gap| gap.detail.as_deref());
        warn!(job = %spec.name, missed, detail, "found firings without a row that are too old, or too many, to run");
        for _ in 0..missed {
            telemetry::firing(&spec.name, State::Skipped, Some(Reason::Missed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Environment};
    use crate::engine::backlog::MISSED_ROWS;

    const NOW: &str = "2026-06-01T12:00:00Z";

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    /// A job that fires every minute, with a ttl of ten seconds, and these keys.
    fn job(keys: &str) -> Arc<JobSpec> {
        let own = keys.starts_with("every");
        job_with(&if own { keys.to_owned() } else { format!("every = \"1m\"\n{keys}") })
    }

    /// A job with a ttl of ten seconds and these keys.
    fn job_with(keys: &str) -> Arc<JobSpec> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs.toml");
        let text = format!("[lock]\nttl = \"10s\"\n[jobs.job]\nkind = \"command\"\nparams = {{}}\n{keys}\n");
        std::fs::write(&path, text).unwrap();
        let kinds: &[&str] = &["command"];
        Config::load(&path, &Environment::default(), &kinds, &|_| Ok(())).unwrap().jobs[0].clone()
    }

    fn horizon(decided_until: &str, rows: &[&str]) -> Horizon {
        Horizon {
            job: "job".into(),
            decided_until: at(decided_until),
            rows: rows.iter().map(|instant| (at(instant), 0)).collect(),
        }
    }

    /// Instant and verdict of each gap, as short text.
    fn gaps(decision: &Decision) -> Vec<String> {
        let word = |gap: &Gap| if gap.run { "run" } else { "miss" };
        decision
            .gaps
            .iter()
            .map(|gap| format!("{} {}", gap.scheduled_at.format("%H:%M"), word(gap)))
            .collect()
    }

    #[test]
    fn what_has_a_row_and_what_is_younger_than_a_ttl_is_no_gap() {
        let there = horizon("2026-06-01T11:58:50Z", &["2026-06-01T11:59:00Z"]);
        assert_eq!(decide(&job(""), &there, at("2026-06-01T11:59:45Z")), None);
        let young = horizon("2026-06-01T11:59:10Z", &[]);
        assert_eq!(decide(&job(""), &young, at("2026-06-01T12:00:09Z")), None);
        let decision = decide(&job(""), &young, at("2026-06-01T12:00:10Z"));
        assert_eq!(gaps(&decision.unwrap()), ["12:00 run"]);
    }

    #[test]
    fn the_newest_of_a_downtime_runs_and_the_older_ones_are_missed() {
        let decision = decide(&job(""), &horizon("2026-06-01T11:55:30Z", &[]), at(NOW)).unwrap();
        assert_eq!(gaps(&decision), ["11:56 miss", "11:57 miss", "11:58 miss", "11:59 run"]);
        assert_eq!(decision.until, at("2026-06-01T11:59:50Z"));
        assert_eq!(decision.decided_until, at("2026-06-01T11:55:30Z"));
    }

    #[test]
    fn nothing_before_the_horizon_is_invented() {
        assert_eq!(decide(&job(""), &horizon("2026-06-01T11:59:30Z", &[]), at(NOW)), None);
    }

    #[test]
    fn a_horizon_that_a_wrong_clock_has_raised_is_lowered_and_then_looked_before() {
        let wrong = horizon("2026-06-01T20:00:00Z", &["2026-06-01T19:59:00Z"]);
        let lowered = decide(&job("start_deadline = \"5m\""), &wrong, at(NOW)).unwrap();
        assert_eq!(
            (lowered.decided_until, lowered.until),
            (at("2026-06-01T20:00:00Z"), at("2026-06-01T11:54:50Z"))
        );
        assert_eq!(gaps(&lowered), Vec::<String>::new());
        let long = decide(&job("start_deadline = \"1d\""), &wrong, at(NOW)).unwrap();
        assert_eq!(long.until, at("2026-06-01T10:59:50Z"));
        // Two replicas differ by some milliseconds in what time it is.
        assert_eq!(decide(&job(""), &horizon("2026-06-01T12:00:00.900Z", &[]), at(NOW)), None);
    }

    #[test]
    fn a_horizon_without_gaps_is_raised_once_in_a_while() {
        let rows = ["2026-06-01T11:58:00Z", "2026-06-01T11:59:00Z"];
        let decision = decide(&job(""), &horizon("2026-06-01T11:57:30Z", &rows), at(NOW)).unwrap();
        assert_eq!((decision.gaps, decision.until), (Vec::new(), at("2026-06-01T11:59:50Z")));
    }

    #[test]
    fn what_is_older_than_its_start_deadline_is_missed() {
        let decision =
            decide(&job("start_deadline = \"30s\""), &horizon("2026-06-01T11:57:30Z", &[]), at(NOW));
        assert_eq!(gaps(&decision.unwrap()), ["11:58 miss", "11:59 miss"]);
    }

    #[test]
    fn a_long_downtime_leaves_a_hundred_rows_and_a_count_of_the_rest() {
        let decision = decide(&job(""), &horizon("2026-05-31T12:00:00Z", &[]), at(NOW)).unwrap();
        let missed: Vec<_> = decision.gaps.iter().filter(|gap| !gap.run).collect();
        assert_eq!(missed.len(), MISSED_ROWS);
        let told: Vec<_> = missed.iter().filter_map(|gap| gap.detail.as_deref()).collect();
        assert_eq!(told.len(), 1);
        // 1439 firings fell due, one runs, a hundred have rows.
        let count = 1_439 - 1 - MISSED_ROWS;
        assert!(
            told[0].starts_with(&format!("and {count} earlier ones were missed, from 2026-05-31T12:01:00Z"))
        );
    }

    #[test]
    fn a_past_of_many_years_is_decided_at_once_and_leaves_a_hundred_rows() {
        // The last one due was at 11:59. It runs, and a hundred have rows.
        let due = usize::try_from(at(NOW).timestamp() / 60 - 1).unwrap();
        let rest = 1 + MISSED_ROWS;
        for (schedule, detail) in [
            ("", format!("and {} earlier ones were missed, from 1970-01-01T00:01:00Z", due - rest)),
            ("every = \"400d\"", String::new()),
        ] {
            let decision = decide(&job(schedule), &horizon("1970-01-01T00:00:00Z", &[]), at(NOW)).unwrap();
            assert_eq!(decision.until, at("2026-06-01T11:59:50Z"));
            let missed: Vec<_> = decision.gaps.iter().filter(|gap| !gap.run).collect();
            assert!(missed.len() <= MISSED_ROWS, "{}", missed.len());
            let told = missed.iter().find_map(|gap| gap.detail.clone()).unwrap_or_default();
            assert!(told.starts_with(&detail), "{told} does not start with {detail}");
        }
    }

    #[test]
    fn of_a_past_that_cannot_be_counted_at_once_a_lower_bound_is_told() {
        let spec = job_with("schedule = \"* * * * * *\"");
        let decision = decide(&spec, &horizon("2020-01-01T00:00:00Z", &[]), at(NOW)).unwrap();
        let told = decision.gaps.iter().find_map(|gap| gap.detail.clone()).unwrap();
        assert!(told.starts_with("and more than 1"), "{told}");
        assert!(told.contains("from 2020-01-01T00:00:01Z to 2026-06-01T11:"), "{told}");
        assert_eq!(decision.gaps.iter().filter(|gap| !gap.run).count(), MISSED_ROWS);
    }

    #[test]
    fn what_has_a_row_in_a_long_past_is_not_counted_as_missed() {
        let missed = |rows: &[&str]| {
            let decision = decide(&job(""), &horizon("2026-01-01T00:00:00Z", rows), at(NOW)).unwrap();
            let told = decision.gaps.iter().find_map(|gap| gap.detail.clone()).unwrap();
            let count: u32 = told.split(' ').nth(1).unwrap().parse().unwrap();
            (count, decision.gaps.len())
        };
        let (all, rows) = missed(&[]);
        let some = ["2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z", "2026-06-01T11:40:00Z"];
        assert_eq!(missed(&some), (all - 3, rows));
    }

    #[test]
    fn jitter_moves_the_moment_that_a_gap_is_judged_by_and_not_its_identity() {
        let spec = job("jitter = \"50s\"");
        let instant = at("2026-06-01T11:58:00Z");
        let due_at = due_at(&spec, instant);
        assert!(due_at > instant, "the hash gives this instant no delay; choose another");
        let just_before = Horizon { decided_until: due_at - TimeDelta::seconds(1), ..horizon(NOW, &[]) };
        let (instants, _) = due(&spec, &just_before, due_at, at(NOW));
        assert_eq!(instants, [instant]);
        let then = Horizon { decided_until: due_at, ..horizon(NOW, &[]) };
        let (instants, _) = due(&spec, &then, due_at + TimeDelta::seconds(1), at(NOW));
        assert!(instants.is_empty());
    }
}
