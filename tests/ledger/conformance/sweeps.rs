//! Runs whose owner has gone.

use std::time::Duration;

use runner::internal::firing::{Delivery, Fence, Reason, State};
use runner::internal::ledger::{ClaimRequest, Heartbeat, Run, Settled, Suspect};

use crate::fixture::{Fixture, HOUR, Site, eventually, fresh, requeue, run, succeeded, suspect, take};

const SECOND: Duration = Duration::from_secs(1);

pub(crate) async fn a_vanished_owners_firing_is_queued_again_with_its_history(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let request = ClaimRequest { lease: Duration::ZERO, ..fresh(&firing) };
    let won = site.win(&request).await;
    let suspect = site.suspect(run(won)).await;
    let swept = site.sweep(&[suspect]).await;
    assert_eq!((swept.len(), swept[0].run, &*swept[0].job), (1, run(won), "a"));
    assert_eq!((swept[0].state, swept[0].reason), (State::Queued, Some(Reason::OwnerLost)));
    let row = site.row(won.id).await;
    assert_eq!(
        (row.state, row.reason, row.crashes),
        (State::Queued.into(), Some(Reason::OwnerLost.into()), 1)
    );
    assert_eq!((row.lease_until, row.finished_at), (None, None));
    let past = site.opened.reader.attempts(won.id).await.unwrap();
    assert_eq!((past.len(), past[0].attempt, past[0].fence), (1, 1, won.fence.0));
    assert_eq!((&past[0].reason, &*past[0].owner), (&Reason::OwnerLost.into(), request.owner.as_str()));
    let again = site.win(&take(&firing, won.id)).await;
    assert_eq!((again.attempt, again.crashes), (2, 1));
    assert!(again.fence > won.fence);
}

pub(crate) async fn a_vanished_owner_of_an_at_most_once_run_leaves_it_lost(site: &Site<impl Fixture>) {
    let abandoned = site.abandoned(Delivery::AtMostOnce).await;
    site.opened.operators.cancel(abandoned.id).await.unwrap();
    let suspect = Suspect { max_crashes: 0, ..site.suspect(abandoned).await };
    let swept = site.sweep(&[suspect]).await;
    assert_eq!((swept[0].state, swept[0].reason), (State::Lost, Some(Reason::OwnerLost)));
    let row = site.row(abandoned.id).await;
    assert_eq!((row.state, row.crashes, row.lease_until), (State::Lost.into(), 1, None));
    assert!(row.finished_at.is_some());
    assert!(site.opened.reader.attempts(abandoned.id).await.unwrap().is_empty());
}

pub(crate) async fn a_firing_that_keeps_losing_its_owner_ends_as_a_crash_loop(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let mut request = ClaimRequest { lease: Duration::ZERO, ..fresh(&firing) };
    for crash in 1..=4 {
        let won = site.win(&request).await;
        let suspect = site.suspect(run(won)).await;
        let swept = site.sweep(&[suspect]).await.remove(0);
        let expected = if crash <= 3 { State::Queued } else { State::Failed };
        assert_eq!(swept.state, expected, "crash {crash}");
        request = ClaimRequest { lease: Duration::ZERO, ..take(&firing, won.id) };
    }
    let row = site.opened.reader.history(&Default::default()).await.unwrap().remove(0);
    assert_eq!((row.state, row.reason), (State::Failed.into(), Some(Reason::CrashLoop.into())));
    assert_eq!((row.attempt, row.crashes), (4, 4));
    assert_eq!(site.opened.reader.attempts(row.id).await.unwrap().len(), 3);
}

pub(crate) async fn a_vanished_owner_of_a_run_to_be_cancelled_leaves_it_cancelled(site: &Site<impl Fixture>) {
    let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
    site.opened.operators.cancel(abandoned.id).await.unwrap();
    let suspect = site.suspect(abandoned).await;
    assert_eq!(site.sweep(&[suspect]).await[0].state, State::Cancelled);
    assert_eq!(site.state(abandoned.id).await, (State::Cancelled, None));
}

pub(crate) async fn a_swept_run_cancelled_in_the_queue_is_not_its_owners_requeue(site: &Site<impl Fixture>) {
    let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
    let suspect = site.suspect(abandoned).await;
    assert_eq!(site.sweep(&[suspect]).await[0].state, State::Queued);
    assert!(site.opened.operators.cancel(abandoned.id).await.unwrap());
    assert_eq!(site.state(abandoned.id).await.0, State::Cancelled);
    assert_eq!(site.settle(abandoned, requeue(Reason::Interrupted)).await, Settled::Fenced);
}

pub(crate) async fn a_heartbeat_in_between_makes_the_sweep_miss(site: &Site<impl Fixture>) {
    let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
    let seen = site.suspect(abandoned).await;
    let heartbeat = site.opened.ledger.heartbeat(abandoned, Duration::ZERO).await.unwrap();
    assert_eq!(heartbeat, Heartbeat::Alive { cancel_requested: false });
    let seen_later = site.suspect(abandoned).await;
    assert!(site.sweep(&[seen]).await.is_empty(), "the lease is over again, but it moved");
    assert_eq!(site.state(abandoned.id).await.0, State::Running);
    assert_eq!(site.sweep(&[seen_later]).await.len(), 1);
}

pub(crate) async fn a_takeover_in_between_makes_the_sweep_miss(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let won = site.win(&ClaimRequest { lease: Duration::ZERO, ..fresh(&firing) }).await;
    let seen = site.suspect(run(won)).await;
    site.sweep(std::slice::from_ref(&seen)).await;
    let again = site.win(&ClaimRequest { lease: Duration::ZERO, ..take(&firing, won.id) }).await;
    let seen_again = site.suspect(run(again)).await;
    let old_fence = Suspect { run: seen.run, ..seen_again.clone() };
    assert!(site.sweep(&[seen, old_fence]).await.is_empty());
    assert_eq!(site.row(won.id).await.crashes, 1);
    assert_eq!(site.sweep(&[seen_again]).await.len(), 1);
}

pub(crate) async fn a_living_lease_is_not_swept(site: &Site<impl Fixture>) {
    site.run().await;
    let seen = site.opened.sweeping.running().await.unwrap().remove(0);
    assert!(seen.remaining > HOUR / 2);
    assert!(site.sweep(&[suspect(&seen)]).await.is_empty());
    assert!(site.sweep(&[]).await.is_empty());
}

pub(crate) async fn a_swept_owner_can_do_nothing_more(site: &Site<impl Fixture>) {
    let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
    let suspect = site.suspect(abandoned).await;
    site.sweep(&[suspect]).await;
    assert_eq!(site.opened.ledger.heartbeat(abandoned, HOUR).await.unwrap(), Heartbeat::Lost);
    assert_eq!(site.settle(abandoned, succeeded()).await, Settled::Fenced);
    assert_eq!(site.state(abandoned.id).await, (State::Queued, Some(Reason::OwnerLost)));
}

pub(crate) async fn the_running_list_shows_what_is_left_of_each_lease(site: &Site<impl Fixture>) {
    assert!(site.opened.sweeping.running().await.unwrap().is_empty());
    let firing = site.firing(SECOND).await;
    let request = ClaimRequest { delivery: Delivery::AtMostOnce, ..fresh(&firing) };
    let won = site.win(&request).await;
    let list = site.opened.sweeping.running().await.unwrap();
    let [seen] = &list[..] else { panic!("{list:?}") };
    assert_eq!(seen.run, Run { id: won.id, fence: Fence(won.fence.0) });
    assert_eq!(
        (&*seen.job, seen.scheduled_at, &*seen.owner),
        ("a", firing.scheduled_at, request.owner.as_str())
    );
    assert_eq!(
        (seen.delivery.clone(), Some(seen.lease_until)),
        (Delivery::AtMostOnce.into(), site.row(won.id).await.lease_until)
    );
    assert!(seen.remaining > HOUR / 2 && seen.remaining <= HOUR);
    site.opened.ledger.heartbeat(run(won), Duration::ZERO).await.unwrap();
    eventually("nothing is left", async || {
        let left = site.opened.sweeping.running().await.unwrap()[0].remaining;
        if left.is_zero() { Ok(()) } else { Err(left) }
    })
    .await;
}
