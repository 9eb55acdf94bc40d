//! Who may run a firing.

use std::time::Duration;

use runner::internal::firing::{Firing, FiringId, JobName, Reason, State};
use runner::internal::ledger::{Claim, ClaimRequest, Entry, JobRegistration};
use uuid::Uuid;

use crate::fixture::{
    Fixture, HOUR, Site, ended, found, fresh, later, other_job, requeue, run, skipping, succeeded, take,
    waiting,
};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) async fn a_claimed_firing_is_a_duplicate_for_everyone_else(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let first = fresh(&firing);
    let won = site.win(&first).await;
    let found = found(site.claim(&fresh(&firing)).await);
    assert_eq!(
        (found.id, found.state, found.scheduled_at),
        (won.id, State::Running.into(), firing.scheduled_at)
    );
    assert_eq!(found.owner.as_deref(), Some(first.owner.as_str()));
    assert_eq!((won.attempt, won.crashes), (1, 0));
}

pub(crate) async fn a_claim_repeated_with_its_own_id_is_the_same_win(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let request = fresh(&firing);
    let won = site.win(&request).await;
    assert_eq!(site.claim(&request).await, Claim::Won(won));
    site.settle(run(won), succeeded()).await;
    assert!(matches!(site.claim(&request).await, Claim::Duplicate(_)), "it runs no more");
}

pub(crate) async fn a_firing_that_ended_is_a_duplicate(site: &Site<impl Fixture>) {
    for state in [State::Succeeded, State::Failed, State::Lost, State::Cancelled] {
        let firing = site.firing(SECOND).await;
        let won = site.win(&fresh(&firing)).await;
        site.settle(run(won), ended(state, Reason::Error)).await;
        let claim = site.claim(&fresh(&firing)).await;
        assert!(matches!(&claim, Claim::Duplicate(found) if found.state == state), "{claim:?}");
        assert_eq!(found(claim).reason, Some(Reason::Error.into()));
    }
    let firing = site.firing(SECOND).await;
    site.opened.ledger.skip(&skipping(&firing, Reason::Missed)).await.unwrap();
    assert_eq!(found(site.claim(&fresh(&firing)).await).state, State::Skipped);
    let firing = site.firing(SECOND * 2).await;
    site.queued(&firing).await;
    let claim = site.claim(&fresh(&firing)).await;
    assert!(matches!(&claim, Claim::Duplicate(found) if found.state == State::Queued), "{claim:?}");
}

pub(crate) async fn a_duplicate_is_told_before_an_overlap(site: &Site<impl Fixture>) {
    let old = site.firing(SECOND * 5).await;
    let won = site.win(&fresh(&old)).await;
    site.settle(run(won), succeeded()).await;
    site.run().await;
    site.opened.operators.pause("a", "me", "note").await.unwrap();
    let claim = site.claim(&fresh(&old)).await;
    assert!(matches!(&claim, Claim::Duplicate(found) if found.id == won.id), "{claim:?}");
}

pub(crate) async fn an_exclusive_run_refuses_another_of_its_job_and_shard(site: &Site<impl Fixture>) {
    let first = site.firing(SECOND * 2).await;
    let won = site.win(&fresh(&first)).await;
    let second = later(&first, SECOND);
    let claim = site.claim(&fresh(&second)).await;
    assert!(
        matches!(&claim, Claim::Overlap(found) if found.id == won.id && found.scheduled_at == first.scheduled_at),
        "{claim:?}"
    );
    site.settle(run(won), succeeded()).await;
    site.win(&fresh(&second)).await;
}

pub(crate) async fn runs_of_other_shards_and_other_jobs_do_not_overlap(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    site.win(&fresh(&firing)).await;
    site.win(&fresh(&Firing { shard: 1, ..firing.clone() })).await;
    site.win(&fresh(&other_job(&firing))).await;
}

pub(crate) async fn runs_that_are_not_exclusive_do_not_overlap(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 5).await;
    let not_exclusive = |firing: &Firing| ClaimRequest { exclusive: false, ..fresh(firing) };
    site.win(&not_exclusive(&firing)).await;
    site.win(&not_exclusive(&later(&firing, SECOND))).await;
    site.win(&fresh(&later(&firing, SECOND * 2))).await;
    site.win(&not_exclusive(&later(&firing, SECOND * 3))).await;
    let exclusive = site.claim(&fresh(&later(&firing, SECOND * 4))).await;
    assert!(matches!(exclusive, Claim::Overlap(_)), "{exclusive:?}");
}

pub(crate) async fn shards_and_trigger_keys_make_different_firings(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let keyed = |key: &str| Firing { trigger_key: key.into(), ..firing.clone() };
    let mut ids = vec![];
    for firing in [keyed(""), keyed("one"), keyed("two"), Firing { shard: 1, ..keyed("") }] {
        let request = ClaimRequest { exclusive: false, ..fresh(&firing) };
        ids.push(site.win(&request).await.id);
        assert!(matches!(
            site.claim(&ClaimRequest { claim_id: Uuid::new_v4(), ..request }).await,
            Claim::Duplicate(_)
        ));
    }
    ids.dedup();
    assert_eq!(ids.len(), 4);
}

pub(crate) async fn a_queued_row_that_would_overlap_stays_queued(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 2).await;
    let id = site.queued(&firing).await;
    let running = site.run().await;
    let claim = site.claim(&take(&firing, id)).await;
    assert!(matches!(&claim, Claim::Overlap(found) if found.id == running.id), "{claim:?}");
    assert_eq!(site.state(id).await, (State::Queued, Some(Reason::Trigger)));
    site.settle(run(running), succeeded()).await;
    assert_eq!(site.win(&take(&firing, id)).await.id, id);
}

pub(crate) async fn a_paused_job_is_not_claimed_until_it_is_resumed(site: &Site<impl Fixture>) {
    let (firing, second) = (site.firing(SECOND * 2).await, site.firing(SECOND).await);
    let id = site.queued(&second).await;
    assert!(site.opened.operators.pause("a", "me", "note").await.unwrap());
    assert_eq!(site.claim(&fresh(&firing)).await, Claim::Paused);
    assert_eq!(site.claim(&take(&second, id)).await, Claim::Paused);
    site.win(&fresh(&other_job(&firing))).await;
    assert!(site.opened.operators.resume("a").await.unwrap());
    let won = site.win(&fresh(&firing)).await;
    site.settle(run(won), succeeded()).await;
    site.win(&take(&second, id)).await;
}

pub(crate) async fn an_unknown_job_is_not_claimed(site: &Site<impl Fixture>) {
    let mut firing = site.firing(SECOND).await;
    firing.job = JobName::new("nobody").unwrap();
    assert_eq!(site.claim(&fresh(&firing)).await, Claim::Unregistered);
}

pub(crate) async fn a_queued_row_that_is_gone_with_its_job_is_of_an_unknown_job(site: &Site<impl Fixture>) {
    let mut firing = site.firing(SECOND).await;
    let gone = FiringId(9_999);
    assert_eq!(site.claim(&take(&firing, gone)).await, Claim::Pruned);
    firing.job = JobName::new("nobody").unwrap();
    assert_eq!(site.claim(&take(&firing, gone)).await, Claim::Unregistered);
}

pub(crate) async fn a_firing_of_the_future_is_told_how_long_to_wait(site: &Site<impl Fixture>) {
    let firing = later(&site.firing(Duration::ZERO).await, SECOND * 60);
    match site.claim(&fresh(&firing)).await {
        Claim::TooEarly(wait) => assert!(wait > SECOND * 30 && wait <= SECOND * 60, "{wait:?}"),
        other => panic!("should have been too early: {other:?}"),
    }
    assert!(site.opened.reader.history(&Default::default()).await.unwrap().is_empty());
}

pub(crate) async fn a_clock_that_runs_a_little_ahead_is_let_through(site: &Site<impl Fixture>) {
    // However long the way there takes, the firing is at most 90 ms ahead when the ledger sees it.
    for number in 0..100 {
        let now = site.firing(Duration::ZERO).await;
        let firing = Firing { trigger_key: number.to_string(), ..later(&now, Duration::from_millis(90)) };
        site.win(&ClaimRequest { exclusive: false, ..fresh(&firing) }).await;
        if site.now().await < firing.scheduled_at {
            return;
        }
    }
    panic!("no answer came before the instant that it was about");
}

pub(crate) async fn a_firing_past_its_start_deadline_is_too_late(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 60).await;
    let until = |not_after| ClaimRequest { entry: Entry::Fresh { not_after }, ..fresh(&firing) };
    assert_eq!(site.claim(&until(SECOND * 59)).await, Claim::TooLate);
    assert_eq!(site.claim(&until(Duration::ZERO)).await, Claim::TooLate);
    site.win(&until(Duration::MAX)).await;
}

pub(crate) async fn a_queued_row_is_not_claimed_before_it_is_due(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let mut enqueue = waiting(&firing, Reason::Trigger);
    enqueue.due_in = SECOND * 60;
    site.enqueue(&enqueue).await;
    let id = site.opened.reader.history(&Default::default()).await.unwrap()[0].id;
    match site.claim(&take(&firing, id)).await {
        Claim::TooEarly(wait) => assert!(wait > SECOND * 30 && wait <= SECOND * 60, "{wait:?}"),
        other => panic!("should have been too early: {other:?}"),
    }
    assert_eq!(site.state(id).await.0, State::Queued);
}

pub(crate) async fn a_queued_row_has_no_start_deadline_and_no_watermark(site: &Site<impl Fixture>) {
    let old = site.firing(HOUR * 1000).await;
    let id = site.queued(&old).await;
    let newer = site.win(&fresh(&site.firing(SECOND).await)).await;
    site.settle(run(newer), succeeded()).await;
    site.prune_all().await;
    assert_eq!(site.claim(&fresh(&later(&old, SECOND))).await, Claim::Pruned);
    assert_eq!(site.win(&take(&old, id)).await.id, id);
}

pub(crate) async fn a_queued_row_that_was_taken_is_a_duplicate(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let id = site.queued(&firing).await;
    let won = site.win(&take(&firing, id)).await;
    let claim = site.claim(&take(&firing, id)).await;
    assert!(matches!(&claim, Claim::Duplicate(found) if found.state == State::Running), "{claim:?}");
    site.settle(run(won), succeeded()).await;
    let claim = site.claim(&take(&firing, id)).await;
    assert!(matches!(&claim, Claim::Duplicate(found) if found.state == State::Succeeded), "{claim:?}");
    site.prune_all().await;
    assert_eq!(site.claim(&take(&firing, id)).await, Claim::Pruned);
}

pub(crate) async fn confirm_knows_the_claim_that_is_running_and_no_other(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let request = fresh(&firing);
    let ledger = &site.opened.ledger;
    assert_eq!(ledger.confirm(&request).await.unwrap(), None);
    let won = site.win(&request).await;
    assert_eq!(ledger.confirm(&request).await.unwrap(), Some(won));
    let same_owner = ClaimRequest { claim_id: Uuid::new_v4(), ..request.clone() };
    assert_eq!(ledger.confirm(&same_owner).await.unwrap(), None);
    site.settle(run(won), succeeded()).await;
    assert_eq!(ledger.confirm(&request).await.unwrap(), None);
}

pub(crate) async fn confirm_does_not_know_a_run_that_was_swept(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let request = ClaimRequest { lease: Duration::ZERO, ..fresh(&firing) };
    let won = site.win(&request).await;
    let suspect = site.suspect(run(won)).await;
    assert_eq!(site.sweep(&[suspect]).await.len(), 1);
    assert_eq!(site.opened.ledger.confirm(&request).await.unwrap(), None);
    site.win(&take(&firing, won.id)).await;
    assert_eq!(site.opened.ledger.confirm(&request).await.unwrap(), None);
}

pub(crate) async fn fences_grow_with_every_claim(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 10).await;
    let mut last = None;
    for n in 0..5 {
        let firing = later(&firing, SECOND * n);
        let won = site.win(&fresh(&firing)).await;
        site.settle(run(won), requeue(Reason::Retry)).await;
        let again = site.win(&take(&firing, won.id)).await;
        site.settle(run(again), succeeded()).await;
        assert!(last < Some(won.fence) && won.fence < again.fence, "{last:?} {won:?} {again:?}");
        assert_eq!((won.attempt, again.attempt), (1, 2));
        last = Some(again.fence);
    }
}

pub(crate) async fn namespaces_do_not_see_each_other(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let won = site.win(&fresh(&firing)).await;
    let other = site.neighbour("other").await;
    assert_eq!(other.ledger.claim(&fresh(&firing)).await.unwrap(), Claim::Unregistered);
    other
        .housekeeping
        .register(&[JobRegistration { name: "a".into(), spec_hash: "1".into() }])
        .await
        .unwrap();
    assert!(matches!(other.ledger.claim(&fresh(&firing)).await.unwrap(), Claim::Won(_)));
    assert_eq!(other.reader.firing(won.id).await.unwrap(), None);
    assert_eq!(other.reader.history(&Default::default()).await.unwrap().len(), 1);
    assert!(!other.operators.cancel(won.id).await.unwrap());
    assert_eq!(
        other.ledger.heartbeat(run(won), HOUR).await.unwrap(),
        runner::internal::ledger::Heartbeat::Lost,
        "not even by number"
    );
}

pub(crate) async fn times_are_the_ledgers(site: &Site<impl Fixture>) {
    let before = site.now().await;
    let won = site.run().await;
    let between = site.now().await;
    site.settle(run(won), succeeded()).await;
    let after = site.now().await;
    let row = site.row(won.id).await;
    assert!(before <= won.started_at && won.started_at <= between);
    assert_eq!(row.started_at, Some(won.started_at));
    assert!(before <= row.created_at && row.created_at <= between);
    assert!(row.finished_at.is_some_and(|end| between <= end && end <= after));
}
