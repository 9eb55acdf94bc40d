//! Firings that nobody wrote a row for: decided once, for all replicas.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use runner::internal::firing::{Delivery, Firing, Origin, Reason, State, Word};
use runner::internal::ledger::{Claim, Decision, Gap, HistoryFilter, Horizon, JobRegistration, Question};

use crate::fixture::{Fixture, HOUR, Site, at_once, fresh, later, run, succeeded, take};

const SECOND: Duration = Duration::from_secs(1);

async fn horizon(site: &Site<impl Fixture>, job: &str, reach_back: Duration) -> Horizon {
    let questions = [Question { job: job.into(), reach_back }];
    let horizons = site.opened.gaps.horizons(&questions).await.expect("the horizon");
    let [horizon] = &horizons[..] else { panic!("{horizons:?}") };
    horizon.clone()
}

fn gap(firing: &Firing, run: bool) -> Gap {
    let detail = (!run).then(|| "long ago".to_owned());
    Gap { scheduled_at: firing.scheduled_at, shard: firing.shard, run, detail }
}

fn decision(horizon: &Horizon, until: DateTime<Utc>, gaps: Vec<Gap>) -> Decision {
    Decision {
        job: horizon.job.clone(),
        decided_until: horizon.decided_until,
        until,
        exclusive: true,
        delivery: Delivery::AtMostOnce,
        expires_in: HOUR,
        gaps,
    }
}

async fn decide(site: &Site<impl Fixture>, decision: &Decision) -> bool {
    site.opened.gaps.decide(decision).await.expect("an answer to the decision")
}

/// The ledger's rows of job `a`, by instant.
async fn states(site: &Site<impl Fixture>) -> Vec<(Word<State>, Option<Word<Reason>>)> {
    let filter = HistoryFilter { job: Some("a".into()), ..HistoryFilter::default() };
    let mut rows = site.opened.reader.history(&filter).await.expect("the rows");
    rows.reverse();
    rows.into_iter().map(|row| (row.state, row.reason)).collect()
}

fn word(state: State, reason: Reason) -> (Word<State>, Option<Word<Reason>>) {
    (state.into(), Some(reason.into()))
}

pub(crate) async fn of_twenty_replicas_one_decides_about_a_gap(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    let seen = horizon(site, "a", Duration::ZERO).await;
    let until = site.now().await;
    let decisions = (0..20).map(|_| {
        let (gaps, decision) = (site.opened.gaps.clone(), decision(&seen, until, vec![gap(&firing, true)]));
        async move { gaps.decide(&decision).await.expect("an answer") }
    });
    let decided = at_once(decisions).await.into_iter().filter(|decided| *decided).count();
    assert_eq!(decided, 1);
    assert_eq!(states(site).await, [word(State::Queued, Reason::CatchUp)]);
    assert_eq!(horizon(site, "a", Duration::ZERO).await.decided_until, until);
}

pub(crate) async fn a_decision_from_an_old_horizon_is_void(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    let old = horizon(site, "a", Duration::ZERO).await;
    let until = site.now().await;
    assert!(decide(site, &decision(&old, until, vec![])).await);
    assert!(!decide(site, &decision(&old, until + TimeDelta::seconds(1), vec![gap(&firing, true)])).await);
    assert_eq!(states(site).await, []);
    assert_eq!(horizon(site, "a", Duration::ZERO).await.decided_until, until);
    let unknown = Horizon { job: "nobody".into(), ..old };
    assert!(!decide(site, &decision(&unknown, until, vec![])).await);
}

/// A clock that was ahead has raised it, and is right again.
pub(crate) async fn a_horizon_in_the_future_is_lowered_but_not_below_the_registration(
    site: &Site<impl Fixture>,
) {
    let known = horizon(site, "a", Duration::ZERO).await;
    let ahead = site.now().await + TimeDelta::hours(8);
    assert!(decide(site, &decision(&known, ahead, vec![])).await);
    let raised = horizon(site, "a", Duration::ZERO).await;
    assert_eq!(raised.decided_until, ahead);
    assert!(decide(site, &decision(&raised, known.decided_until - TimeDelta::hours(1), vec![])).await);
    assert_eq!(horizon(site, "a", Duration::ZERO).await.decided_until, known.decided_until);
}

/// Horizons that happen to be the same are not moved along.
pub(crate) async fn a_decision_moves_the_horizon_of_its_own_job_only(site: &Site<impl Fixture>) {
    let other = site.neighbour("other").await;
    let registered = JobRegistration { name: "a".into(), spec_hash: "1".into() };
    other.housekeeping.register(&[registered]).await.unwrap();
    let others = async || {
        let questions = [Question { job: "a".into(), reach_back: Duration::ZERO }];
        other.gaps.horizons(&questions).await.unwrap().remove(0)
    };
    let until = site.now().await;
    assert!(other.gaps.decide(&decision(&others().await, until, vec![])).await.unwrap());
    for job in ["a", "b"] {
        assert!(decide(site, &decision(&horizon(site, job, Duration::ZERO).await, until, vec![])).await);
    }
    let same = horizon(site, "a", Duration::ZERO).await;
    assert!(decide(site, &decision(&same, until + TimeDelta::seconds(1), vec![])).await);
    assert_eq!(horizon(site, "b", Duration::ZERO).await.decided_until, until);
    assert_eq!(others().await.decided_until, until);
    let void = decision(&same, until + TimeDelta::seconds(2), vec![]);
    assert!(!decide(site, &void).await, "theirs is not ours");
}

pub(crate) async fn a_gap_is_queued_or_skipped_and_what_has_a_row_keeps_it(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    let next = later(&firing, SECOND);
    let there = later(&firing, SECOND * 2);
    let won = site.win(&fresh(&there)).await;
    site.settle(run(won), succeeded()).await;
    let seen = horizon(site, "a", Duration::ZERO).await;
    let gaps = vec![gap(&firing, false), gap(&next, true), gap(&there, true)];
    assert!(decide(site, &decision(&seen, site.now().await, gaps)).await);
    assert_eq!(
        states(site).await,
        [
            word(State::Skipped, Reason::Missed),
            word(State::Queued, Reason::CatchUp),
            (State::Succeeded.into(), None)
        ]
    );
    let mut rows = site.opened.reader.history(&HistoryFilter::default()).await.unwrap();
    let (skipped, queued) = (rows.pop().unwrap(), rows.pop().unwrap());
    assert_eq!((skipped.error.as_deref(), skipped.exclusive), (Some("long ago"), false));
    assert!(skipped.finished_at.is_some() && skipped.due_at.is_none() && skipped.expires_at.is_none());
    assert_eq!((queued.origin, queued.delivery), (Origin::CatchUp.into(), Delivery::AtMostOnce.into()));
    assert_eq!((queued.exclusive, queued.attempt, queued.finished_at), (true, 0, None));
    assert_eq!((&*queued.job, queued.shard, &*queued.trigger_key), ("a", 0, ""));
    assert_eq!(site.win(&take(&next, queued.id)).await.attempt, 1);
    assert!(matches!(site.claim(&fresh(&firing)).await, Claim::Duplicate(_)));
}

pub(crate) async fn the_gaps_of_a_paused_job_are_skipped(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    site.opened.operators.pause("a", "me", "note").await.unwrap();
    let seen = horizon(site, "a", Duration::ZERO).await;
    let gaps = vec![gap(&firing, true), gap(&later(&firing, SECOND), false)];
    assert!(decide(site, &decision(&seen, site.now().await, gaps)).await);
    assert_eq!(
        states(site).await,
        [word(State::Skipped, Reason::Paused), word(State::Skipped, Reason::Paused)]
    );
    // It is the job's own pause that counts, in either order of the names.
    site.opened.operators.resume("a").await.unwrap();
    site.opened.operators.pause("b", "me", "note").await.unwrap();
    let seen = horizon(site, "b", Duration::ZERO).await;
    assert!(decide(site, &decision(&seen, site.now().await, vec![gap(&firing, true)])).await);
    let filter = HistoryFilter { job: Some("b".into()), ..HistoryFilter::default() };
    assert_eq!(site.opened.reader.history(&filter).await.unwrap()[0].reason, Some(Reason::Paused.into()));
}

pub(crate) async fn what_retention_has_passed_over_is_no_gap(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    let won = site.win(&fresh(&firing)).await;
    site.settle(run(won), succeeded()).await;
    site.prune_all().await;
    let seen = horizon(site, "a", Duration::ZERO).await;
    let gaps = vec![gap(&firing, true), gap(&later(&firing, HOUR), true)];
    assert!(decide(site, &decision(&seen, site.now().await, gaps)).await);
    assert_eq!(states(site).await, [word(State::Queued, Reason::CatchUp)], "only what is younger");
}

pub(crate) async fn the_horizon_says_which_firings_of_the_schedule_have_rows(site: &Site<impl Fixture>) {
    let known = horizon(site, "a", Duration::ZERO).await.decided_until;
    assert!(known <= site.now().await);
    let firing = site.firing(SECOND * 60).await;
    let sharded = Firing { shard: 1, ..later(&firing, SECOND) };
    let manual = Firing { trigger_key: "key".into(), ..later(&firing, SECOND * 2) };
    for firing in [&firing, &sharded, &manual, &crate::fixture::other_job(&later(&firing, SECOND * 3))] {
        let won = site.win(&fresh(firing)).await;
        site.settle(run(won), succeeded()).await;
    }
    assert_eq!(horizon(site, "a", Duration::ZERO).await.rows, [], "they were due before the job was known");
    let mut seen = horizon(site, "a", HOUR).await;
    seen.rows.sort();
    assert_eq!(seen.rows, [(firing.scheduled_at, 0), (sharded.scheduled_at, 1)]);
    assert_eq!(seen.decided_until, known);
    // A horizon that was raised is the later of the two.
    let until = site.now().await;
    assert!(decide(site, &decision(&seen, until, vec![])).await);
    assert_eq!(horizon(site, "a", HOUR).await.decided_until, until);
    assert!(site.opened.gaps.horizons(&[]).await.unwrap().is_empty());
    let unknown = [Question { job: "nobody".into(), reach_back: HOUR }];
    assert!(site.opened.gaps.horizons(&unknown).await.unwrap().is_empty());
}
