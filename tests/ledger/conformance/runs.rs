//! Keeping a run and ending it.

use std::time::Duration;

use runner::internal::firing::{Delivery, Fence, Reason, State};
use runner::internal::ledger::{Ending, FiringId, Heartbeat, Run, Settled, Settlement};

use crate::fixture::{Fixture, HOUR, Site, ended, fresh, requeue, run, succeeded, take};

const SECOND: Duration = Duration::from_secs(1);

async fn beat(site: &Site<impl Fixture>, run: Run, lease: Duration) -> Heartbeat {
    site.opened.ledger.heartbeat(run, lease).await.expect("an answer to the heartbeat")
}

const ALIVE: Heartbeat = Heartbeat::Alive { cancel_requested: false };

pub(crate) async fn a_heartbeat_moves_the_lease(site: &Site<impl Fixture>) {
    let won = site.run().await;
    let first = site.row(won.id).await.lease_until.unwrap();
    assert_eq!(beat(site, run(won), HOUR * 2).await, ALIVE);
    let second = site.row(won.id).await.lease_until.unwrap();
    assert!(second - first > chrono::TimeDelta::minutes(59), "{first} {second}");
}

pub(crate) async fn a_heartbeat_brings_the_wish_to_cancel(site: &Site<impl Fixture>) {
    let won = site.run().await;
    assert!(site.opened.operators.cancel(won.id).await.unwrap());
    assert_eq!(beat(site, run(won), HOUR).await, Heartbeat::Alive { cancel_requested: true });
    assert_eq!(site.state(won.id).await.0, State::Running);
}

pub(crate) async fn a_heartbeat_revives_a_lease_that_nobody_took(site: &Site<impl Fixture>) {
    let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
    let suspect = site.suspect(abandoned).await;
    assert_eq!(beat(site, abandoned, HOUR).await, ALIVE);
    assert!(site.sweep(&[suspect]).await.is_empty());
    assert_eq!(site.settle(abandoned, succeeded()).await, Settled::Recorded);
}

pub(crate) async fn a_heartbeat_of_anything_but_the_run_is_lost(site: &Site<impl Fixture>) {
    let won = site.run().await;
    let of_another_fence = Run { fence: Fence(won.fence.0 + 1), ..run(won) };
    assert_eq!(beat(site, of_another_fence, HOUR).await, Heartbeat::Lost);
    let of_no_row = Run { id: FiringId(won.id.0 + 1), ..run(won) };
    assert_eq!(beat(site, of_no_row, HOUR).await, Heartbeat::Lost);
    site.settle(run(won), succeeded()).await;
    assert_eq!(beat(site, run(won), HOUR).await, Heartbeat::Lost);
}

pub(crate) async fn each_end_is_written_as_it_was_said(site: &Site<impl Fixture>) {
    for (state, reason) in [
        (State::Succeeded, None),
        (State::Failed, Some(Reason::Timeout)),
        (State::Lost, Some(Reason::LockLost)),
        (State::Cancelled, None),
    ] {
        let won = site.run().await;
        let settlement = Settlement {
            run: run(won),
            ending: Ending::Terminal { state, reason },
            crashed: state == State::Lost,
            error: Some("it said 'no' \u{1F980}".into()),
            output: Some("line one\nline two".into()),
        };
        assert_eq!(site.opened.ledger.settle(&settlement).await.unwrap(), Settled::Recorded);
        let row = site.row(won.id).await;
        assert_eq!((row.state, row.reason), (state.into(), reason.map(Into::into)));
        assert_eq!((row.error, row.output), (settlement.error, settlement.output));
        assert_eq!(row.crashes, u32::from(state == State::Lost));
        assert_eq!((row.lease_until, row.fence), (None, Some(won.fence.0)));
        assert!(row.finished_at >= row.started_at);
    }
}

pub(crate) async fn output_of_any_kind_does_not_keep_a_run_from_ending(site: &Site<impl Fixture>) {
    for ending in [succeeded(), requeue(Reason::Retry)] {
        let won = site.run().await;
        let odd = Some("before\0\u{FFFD}\u{1F980}\r\x1b[1mafter".to_owned());
        let settlement =
            Settlement { run: run(won), ending, crashed: false, error: odd.clone(), output: odd };
        assert_eq!(site.opened.ledger.settle(&settlement).await.unwrap(), Settled::Recorded);
        let row = site.row(won.id).await;
        for text in [row.error.unwrap(), row.output.unwrap()] {
            assert!(text.starts_with("before") && text.ends_with("after"), "{text:?}");
        }
    }
}

pub(crate) async fn a_settle_repeated_is_recorded_again(site: &Site<impl Fixture>) {
    for ending in [succeeded(), ended(State::Failed, Reason::Timeout), ended(State::Lost, Reason::LockLost)] {
        let won = site.run().await;
        assert_eq!(site.settle(run(won), ending).await, Settled::Recorded);
        let row = site.row(won.id).await;
        assert_eq!(site.settle(run(won), ending).await, Settled::Recorded);
        assert_eq!(site.row(won.id).await, row);
    }
}

pub(crate) async fn another_end_does_not_change_a_terminal_row(site: &Site<impl Fixture>) {
    for first in
        [succeeded(), ended(State::Failed, Reason::Timeout), ended(State::Cancelled, Reason::Requested)]
    {
        let won = site.run().await;
        site.settle(run(won), first).await;
        let row = site.row(won.id).await;
        for second in [
            ended(State::Failed, Reason::Panicked),
            ended(State::Lost, Reason::Error),
            requeue(Reason::Retry),
        ] {
            assert_eq!(site.settle(run(won), second).await, Settled::Fenced);
        }
        assert_eq!(site.row(won.id).await, row);
    }
}

pub(crate) async fn a_settle_after_the_lease_counts_while_nobody_took_over(site: &Site<impl Fixture>) {
    let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
    site.suspect(abandoned).await;
    assert_eq!(site.settle(abandoned, succeeded()).await, Settled::Recorded);
    assert_eq!(site.state(abandoned.id).await, (State::Succeeded, None));
}

pub(crate) async fn a_settle_after_a_takeover_is_fenced(site: &Site<impl Fixture>) {
    let old = site.abandoned(Delivery::AtLeastOnce).await;
    let suspect = site.suspect(old).await;
    site.sweep(&[suspect]).await;
    assert_eq!(site.settle(old, succeeded()).await, Settled::Fenced, "swept");
    let due = site.opened.queue.due(&["a".into()], 10).await.unwrap().remove(0);
    let new = site.win(&take(&due.firing, due.id)).await;
    assert_eq!(new.attempt, 2);
    for ending in [succeeded(), ended(State::Lost, Reason::Error), requeue(Reason::Retry)] {
        assert_eq!(site.settle(old, ending).await, Settled::Fenced, "taken over");
    }
    assert_eq!(site.state(old.id).await.0, State::Running);
    assert_eq!(site.settle(run(new), succeeded()).await, Settled::Recorded);
    assert_eq!(site.settle(old, succeeded()).await, Settled::Fenced, "ended by the other");
}

pub(crate) async fn a_lost_run_takes_its_late_result_once(site: &Site<impl Fixture>) {
    for late in [succeeded(), ended(State::Failed, Reason::Error)] {
        let old = site.abandoned(Delivery::AtMostOnce).await;
        let suspect = site.suspect(old).await;
        site.sweep(&[suspect]).await;
        assert_eq!(site.state(old.id).await.0, State::Lost);
        assert_eq!(site.settle(old, late).await, Settled::Recorded);
        let row = site.row(old.id).await;
        assert_eq!(site.settle(old, late).await, Settled::Recorded, "the same again");
        assert_eq!(
            site.settle(old, ended(State::Failed, Reason::Expired)).await,
            Settled::Fenced,
            "only once"
        );
        assert_eq!(site.row(old.id).await, row);
    }
}

pub(crate) async fn a_lost_run_takes_no_other_end(site: &Site<impl Fixture>) {
    let old = site.abandoned(Delivery::AtMostOnce).await;
    let suspect = site.suspect(old).await;
    site.sweep(&[suspect]).await;
    let row = site.row(old.id).await;
    for late in
        [ended(State::Cancelled, Reason::Error), ended(State::Lost, Reason::Error), requeue(Reason::Retry)]
    {
        assert_eq!(site.settle(old, late).await, Settled::Fenced);
    }
    let of_another_fence = Run { fence: Fence(old.fence.0 + 1), ..old };
    assert_eq!(site.settle(of_another_fence, succeeded()).await, Settled::Fenced);
    assert_eq!(site.row(old.id).await, row);
}

pub(crate) async fn a_requeued_run_waits_and_runs_again_with_a_new_fence(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let request = fresh(&firing);
    let first = site.win(&request).await;
    let settlement = Settlement {
        run: run(first),
        ending: requeue(Reason::Retry),
        crashed: false,
        error: Some("refused".into()),
        output: Some("half".into()),
    };
    assert_eq!(site.opened.ledger.settle(&settlement).await.unwrap(), Settled::Recorded);
    let row = site.row(first.id).await;
    assert_eq!((row.state, row.reason), (State::Queued.into(), Some(Reason::Retry.into())));
    assert!(row.due_at.is_some() && row.expires_at > row.due_at && row.finished_at.is_none());
    let second = site.win(&take(&firing, first.id)).await;
    assert!(second.fence > first.fence);
    assert_eq!((second.id, second.attempt, second.crashes), (first.id, 2, 0));
    let row = site.row(first.id).await;
    assert_eq!(
        (row.reason, row.error, row.output, row.due_at, row.expires_at),
        (None, None, None, None, None)
    );
    let past = site.opened.reader.attempts(first.id).await.unwrap();
    assert_eq!(past.len(), 1);
    assert_eq!((past[0].attempt, past[0].fence, past[0].reason.as_str()), (1, first.fence.0, "retry"));
    assert_eq!((&*past[0].owner, past[0].started_at), (request.owner.as_str(), Some(first.started_at)));
    assert_eq!((&past[0].error, &past[0].output), (&settlement.error, &settlement.output));
}

pub(crate) async fn a_requeue_repeated_is_recorded_even_after_the_next_claim(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let first = site.win(&fresh(&firing)).await;
    for _ in 0..2 {
        assert_eq!(site.settle(run(first), requeue(Reason::Retry)).await, Settled::Recorded);
    }
    site.win(&take(&firing, first.id)).await;
    assert_eq!(site.settle(run(first), requeue(Reason::Retry)).await, Settled::Recorded);
    assert_eq!(site.settle(run(first), requeue(Reason::Interrupted)).await, Settled::Fenced);
    assert_eq!(site.settle(run(first), succeeded()).await, Settled::Fenced);
    assert_eq!(site.opened.reader.attempts(first.id).await.unwrap().len(), 1);
}

pub(crate) async fn only_crashed_runs_count_as_crashes(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let first = site.win(&fresh(&firing)).await;
    let requeued = |run, crashed| Settlement {
        run,
        ending: requeue(Reason::Interrupted),
        crashed,
        error: None,
        output: None,
    };
    site.opened.ledger.settle(&requeued(run(first), true)).await.unwrap();
    let second = site.win(&take(&firing, first.id)).await;
    assert_eq!((second.attempt, second.crashes), (2, 1));
    site.opened.ledger.settle(&requeued(run(second), false)).await.unwrap();
    let third = site.win(&take(&firing, first.id)).await;
    assert_eq!((third.attempt, third.crashes), (3, 1));
}

pub(crate) async fn only_failed_runs_count_as_failures(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let first = site.win(&fresh(&firing)).await;
    assert_eq!(first.failures, 0);
    site.settle(run(first), requeue(Reason::Interrupted)).await;
    let second = site.win(&take(&firing, first.id)).await;
    assert_eq!((second.attempt, second.failures), (2, 0), "a drain is no failure");
    site.settle(run(second), requeue(Reason::Retry)).await;
    let request = take(&firing, first.id);
    let third = site.win(&request).await;
    assert_eq!((third.attempt, third.failures), (3, 1));
    let confirmed = site.opened.ledger.confirm(&request).await.unwrap();
    assert_eq!(confirmed, Some(third), "whoever lost the answer learns the same");
    assert_eq!(site.win(&request).await, third, "and so does who asks for it once more");
}

pub(crate) async fn a_wish_to_cancel_is_not_lost_with_a_requeue(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let won = site.win(&fresh(&firing)).await;
    site.opened.operators.cancel(won.id).await.unwrap();
    assert_eq!(site.settle(run(won), requeue(Reason::Retry)).await, Settled::Recorded);
    assert_eq!(site.state(won.id).await, (State::Cancelled, None));
    assert_eq!(site.settle(run(won), requeue(Reason::Retry)).await, Settled::Recorded);
    assert!(site.opened.reader.attempts(won.id).await.unwrap().is_empty(), "nothing superseded it");
}
