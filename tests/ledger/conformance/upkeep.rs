//! Keeping jobs and history in order.

use std::time::Duration;

use runner::internal::firing::{Firing, Origin, Reason, State};
use runner::internal::ledger::{Claim, HistoryFilter, JobRegistration, JobRow};

use crate::fixture::{Fixture, HOUR, Site, fresh, later, other_job, requeue, run, succeeded, take};

const SECOND: Duration = Duration::from_secs(1);

async fn job(site: &Site<impl Fixture>, name: &str) -> JobRow {
    let jobs = site.opened.reader.jobs().await.expect("the jobs");
    jobs.into_iter().find(|job| job.name == name).expect("the job")
}

pub(crate) async fn a_job_is_known_since_its_schedule_changed(site: &Site<impl Fixture>) {
    let first = job(site, "a").await;
    assert!(first.known_since <= site.now().await);
    site.opened.operators.pause("a", "me", "note").await.unwrap();
    let paused = job(site, "a").await;
    site.register(&["a", "b"]).await;
    assert_eq!(job(site, "a").await, paused);
    let changed = JobRegistration { name: "a".into(), spec_hash: "2".into() };
    site.opened.housekeeping.register(&[changed]).await.unwrap();
    let second = job(site, "a").await;
    assert!(second.known_since > first.known_since);
    assert_eq!((&*second.spec_hash, second.paused_at), ("2", paused.paused_at));
    assert_eq!(job(site, "b").await.spec_hash, "1");
    site.opened.housekeeping.register(&[]).await.unwrap();
    assert_eq!(site.opened.reader.jobs().await.unwrap().len(), 2);
}

pub(crate) async fn a_pause_keeps_who_and_why(site: &Site<impl Fixture>) {
    let operators = &site.opened.operators;
    assert!(operators.pause("a", "me", "it is broken").await.unwrap());
    let paused = job(site, "a").await;
    assert_eq!(
        (paused.paused_by.as_deref(), paused.paused_note.as_deref()),
        (Some("me"), Some("it is broken"))
    );
    assert!(operators.pause("a", "you", "still").await.unwrap());
    let again = job(site, "a").await;
    assert_eq!((again.paused_by.as_deref(), again.paused_at), (Some("you"), paused.paused_at));
    assert!(operators.resume("a").await.unwrap() && operators.resume("a").await.unwrap());
    let resumed = job(site, "a").await;
    assert_eq!((resumed.paused_at, resumed.paused_by, resumed.paused_note), (None, None, None));
    assert!(!operators.pause("nobody", "me", "note").await.unwrap());
    assert!(!operators.resume("nobody").await.unwrap());
}

pub(crate) async fn prune_removes_old_ends_and_raises_the_watermark(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 60).await;
    let won = site.win(&fresh(&firing)).await;
    site.settle(run(won), requeue(Reason::Retry)).await;
    let again = site.win(&take(&firing, won.id)).await;
    site.settle(run(again), succeeded()).await;
    assert_eq!(site.opened.housekeeping.prune(HOUR, 100).await.unwrap(), 0, "not old enough");
    assert_eq!(job(site, "a").await.pruned_before, None);
    assert_eq!(site.prune_all().await, 1);
    assert_eq!(site.opened.reader.firing(won.id).await.unwrap(), None);
    assert!(site.opened.reader.attempts(won.id).await.unwrap().is_empty());
    let watermark = job(site, "a").await.pruned_before.expect("a watermark");
    assert!(watermark > firing.scheduled_at && watermark <= site.now().await);
    assert_eq!(job(site, "b").await.pruned_before, None);
    assert_eq!(site.claim(&fresh(&firing)).await, Claim::Pruned);
    assert_eq!(site.claim(&fresh(&later(&firing, SECOND))).await, Claim::Pruned);
    site.win(&fresh(&other_job(&firing))).await;
}

pub(crate) async fn prune_keeps_what_has_not_ended(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 60).await;
    let running = site.win(&fresh(&firing)).await;
    let queued = site.queued(&later(&firing, SECOND)).await;
    let ended = site.win(&fresh(&other_job(&firing))).await;
    site.settle(run(ended), succeeded()).await;
    assert_eq!(site.prune_all().await, 1);
    assert_eq!(site.opened.housekeeping.prune(Duration::ZERO, 100).await.unwrap(), 0);
    assert_eq!(job(site, "a").await.pruned_before, None, "it has lost nothing");
    // Nor when the watermark has passed over it.
    let beside = site.win(&fresh(&Firing { shard: 1, ..firing.clone() })).await;
    site.settle(run(beside), succeeded()).await;
    assert_eq!(site.prune_all().await, 1);
    assert_eq!(site.state(running.id).await.0, State::Running);
    assert_eq!(site.state(queued).await.0, State::Queued);
}

pub(crate) async fn prune_goes_by_the_instant_and_by_the_end(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 60).await;
    let early = Firing { origin: Origin::Manual, ..later(&firing, HOUR) };
    let id = site.queued(&early).await;
    let won = site.win(&take(&early, id)).await;
    site.settle(run(won), succeeded()).await;
    let ended = site.row(id).await.finished_at;
    crate::fixture::eventually("it has ended in the past", async || {
        let now = site.now().await;
        if ended < Some(now) { Ok(()) } else { Err(now) }
    })
    .await;
    assert_eq!(
        site.opened.housekeeping.prune(Duration::ZERO, 100).await.unwrap(),
        0,
        "its instant is to come"
    );
    assert_eq!(job(site, "a").await.pruned_before, None);
    let old = site.win(&fresh(&firing)).await;
    site.settle(run(old), succeeded()).await;
    assert_eq!(site.opened.housekeeping.prune(SECOND * 30, 100).await.unwrap(), 0, "it has only just ended");
    assert_eq!(job(site, "a").await.pruned_before, None);
    assert_eq!(site.prune_all().await, 1);
    assert_eq!(
        site.opened.housekeeping.prune(Duration::ZERO, 100).await.unwrap(),
        0,
        "its instant is to come"
    );
    assert_eq!(site.state(id).await.0, State::Succeeded);
    let watermark = job(site, "a").await.pruned_before;
    assert!(watermark > Some(firing.scheduled_at) && watermark < Some(early.scheduled_at), "{watermark:?}");
}

pub(crate) async fn prune_works_in_batches(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 60).await;
    let mut last = None;
    for n in 0..7 {
        let won = site.win(&fresh(&later(&firing, SECOND * n))).await;
        site.settle(run(won), succeeded()).await;
        last = site.row(won.id).await.finished_at;
    }
    crate::fixture::eventually("all have ended in the past", async || {
        let now = site.now().await;
        if last < Some(now) { Ok(()) } else { Err(now) }
    })
    .await;
    assert_eq!(site.opened.housekeeping.prune(Duration::ZERO, 2).await.unwrap(), 7);
    assert!(site.opened.reader.history(&HistoryFilter::default()).await.unwrap().is_empty());
}
