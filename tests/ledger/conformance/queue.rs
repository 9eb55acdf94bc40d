//! Firings that wait.

use std::time::Duration;

use runner::internal::firing::{Firing, JobName, Reason, State};
use runner::internal::ledger::{Enqueue, Enqueued, HistoryFilter};

use crate::fixture::{
    Fixture, Site, eventually, fresh, later, other_job, requeue, run, succeeded, take, waiting,
};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) async fn a_queued_firing_has_not_run_and_has_no_fence(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let row = site.row(site.queued(&firing).await).await;
    assert_eq!((row.state, row.reason), (State::Queued.into(), Some(Reason::Trigger.into())));
    assert_eq!((row.attempt, row.crashes, row.fence, row.owner, row.claim_id), (0, 0, None, None, None));
    assert_eq!((row.scheduled_at, row.started_at, row.finished_at), (firing.scheduled_at, None, None));
    assert!(row.due_at.is_some() && row.expires_at > row.due_at);
}

pub(crate) async fn a_firing_with_a_row_is_not_queued(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let id = site.queued(&firing).await;
    let there = async |state: State| match site.enqueue(&waiting(&firing, Reason::CatchUp)).await {
        Enqueued::AlreadyThere(found) => assert_eq!((found.id, found.state), (id, state.into())),
        other => panic!("should have been there: {other:?}"),
    };
    there(State::Queued).await;
    let won = site.win(&take(&firing, id)).await;
    there(State::Running).await;
    site.settle(run(won), succeeded()).await;
    there(State::Succeeded).await;
}

pub(crate) async fn one_waits_for_an_overlap(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 5).await;
    let running = site.run().await;
    assert!(matches!(site.enqueue(&waiting(&firing, Reason::Overlap)).await, Enqueued::Queued(_)));
    let next = later(&firing, SECOND);
    assert_eq!(site.enqueue(&waiting(&next, Reason::Overlap)).await, Enqueued::WaitingAlready);
    let other_shard = Firing { shard: 1, ..next.clone() };
    assert!(matches!(site.enqueue(&waiting(&other_shard, Reason::Overlap)).await, Enqueued::Queued(_)));
    assert!(matches!(site.enqueue(&waiting(&other_job(&next), Reason::Overlap)).await, Enqueued::Queued(_)));
    assert!(matches!(
        site.enqueue(&waiting(&later(&next, SECOND), Reason::Trigger)).await,
        Enqueued::Queued(_)
    ));
    site.settle(run(running), succeeded()).await;
    let due = site.opened.queue.due(&["a".into()], 10).await.unwrap();
    let waited = due.iter().find(|due| due.firing == firing).expect("it waited");
    site.win(&take(&firing, waited.id)).await;
    assert!(matches!(site.enqueue(&waiting(&next, Reason::Overlap)).await, Enqueued::Queued(_)));
}

pub(crate) async fn nothing_is_queued_for_a_paused_unknown_or_pruned_job(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 5).await;
    let unknown = Firing { job: JobName::new("nobody").unwrap(), ..firing.clone() };
    assert_eq!(site.enqueue(&waiting(&unknown, Reason::Trigger)).await, Enqueued::Refused);
    site.opened.operators.pause("a", "me", "note").await.unwrap();
    assert_eq!(site.enqueue(&waiting(&firing, Reason::Trigger)).await, Enqueued::Refused);
    site.opened.operators.resume("a").await.unwrap();
    let won = site.run().await;
    site.settle(run(won), succeeded()).await;
    site.prune_all().await;
    assert_eq!(site.enqueue(&waiting(&firing, Reason::Trigger)).await, Enqueued::Refused);
    assert!(site.opened.reader.history(&HistoryFilter::default()).await.unwrap().is_empty());
}

pub(crate) async fn the_queue_gives_what_is_due_oldest_first(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 60).await;
    let soon = Enqueue { due_in: SECOND * 3600, ..waiting(&later(&firing, SECOND), Reason::Retry) };
    site.enqueue(&soon).await;
    let mut ids = vec![];
    for (n, firing) in [&firing, &other_job(&firing)].into_iter().cycle().take(6).enumerate() {
        let firing = Firing { trigger_key: n.to_string(), ..firing.clone() };
        ids.push(site.queued(&firing).await);
    }
    let (a, b) = ("a".to_owned(), "b".to_owned());
    let due = async |jobs: &[String], limit| {
        let due = site.opened.queue.due(jobs, limit).await.unwrap();
        due.into_iter().map(|due| due.id).collect::<Vec<_>>()
    };
    assert_eq!(due(&[a.clone(), b], 10).await, ids);
    assert_eq!(due(std::slice::from_ref(&a), 10).await, [ids[0], ids[2], ids[4]]);
    assert_eq!(due(&[a], 2).await, [ids[0], ids[2]]);
    assert_eq!(due(&[], 10).await, []);
    let first = site.opened.queue.due(&["b".into()], 1).await.unwrap().remove(0);
    assert_eq!(first.firing, Firing { trigger_key: "1".into(), ..other_job(&firing) });
    assert_eq!((first.attempt, first.reason), (0, Some(Reason::Trigger.into())));
}

pub(crate) async fn the_queue_leaves_out_what_could_not_be_claimed(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 60).await;
    let blocked = site.queued(&firing).await;
    let beside = Enqueue { exclusive: false, ..waiting(&later(&firing, SECOND), Reason::Trigger) };
    site.enqueue(&beside).await;
    let running = site.run().await;
    let due = async || site.opened.queue.due(&["a".into()], 10).await.unwrap();
    assert_eq!(due().await.iter().map(|due| &due.firing).collect::<Vec<_>>(), [&beside.firing]);
    site.settle(run(running), succeeded()).await;
    assert_eq!(due().await.first().map(|due| due.id), Some(blocked));
    site.opened.operators.pause("a", "me", "note").await.unwrap();
    assert_eq!(due().await, []);
}

pub(crate) async fn what_waited_too_long_ends_with_its_reason(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 60).await;
    let short = |firing: &Firing| Enqueue { expires_in: Duration::ZERO, ..waiting(firing, Reason::Trigger) };
    let Enqueued::Queued(never_ran) = site.enqueue(&short(&firing)).await else { panic!("not queued") };
    let won = site.run().await;
    let mut ending = requeue(Reason::Retry);
    if let runner::internal::ledger::Ending::Requeue { expires_in, .. } = &mut ending {
        *expires_in = Duration::ZERO;
    }
    site.settle(run(won), ending).await;
    let lasting = site.queued(&other_job(&firing)).await;
    eventually("both have expired", async || {
        site.opened.queue.expire(1).await.unwrap();
        match (site.state(never_ran).await.0, site.state(won.id).await.0) {
            (State::Skipped, State::Failed) => Ok(()),
            states => Err(states),
        }
    })
    .await;
    assert_eq!(site.state(never_ran).await, (State::Skipped, Some(Reason::Missed)));
    assert_eq!(site.state(won.id).await, (State::Failed, Some(Reason::Expired)));
    assert!(site.opened.queue.expire(10).await.unwrap().is_empty());
    assert_eq!(site.state(lasting).await.0, State::Queued);
}

pub(crate) async fn a_queued_firing_is_cancelled_at_once(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let id = site.queued(&firing).await;
    assert!(site.opened.operators.cancel(id).await.unwrap());
    assert_eq!(site.state(id).await, (State::Cancelled, None));
    assert!(site.row(id).await.finished_at.is_some());
    assert!(matches!(site.claim(&take(&firing, id)).await, runner::internal::ledger::Claim::Duplicate(_)));
}

pub(crate) async fn an_ended_firing_cannot_be_cancelled(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let won = site.win(&fresh(&firing)).await;
    site.settle(run(won), succeeded()).await;
    let row = site.row(won.id).await;
    assert!(!site.opened.operators.cancel(won.id).await.unwrap());
    assert!(!site.opened.operators.cancel(runner::internal::ledger::FiringId(won.id.0 + 1)).await.unwrap());
    assert_eq!(site.row(won.id).await, row);
}
