//! A replica that was frozen: time has passed, and no timer has noticed it.

use std::time::Duration;

use lockcore::{Locks, RenewOutcome};
use tracing::Level;

use super::answers::busy;
use super::fixture::{Corridor, INTERRUPTED, LICENCE, TTL, ran, recorded, secs};
use super::ledger::WON;
use super::shown::Shown;
use crate::engine::job_set::JobSet;
use crate::engine::runtimes::Runtimes;
use crate::firing::{Reason, State};
use crate::job::JobError;
use crate::ledger::{Claim, Heartbeat};

/// Longer than every limit of the job.
const LONG: Duration = Duration::from_secs(3_600);

#[tokio::test(start_paused = true)]
async fn a_run_whose_lease_was_over_before_it_could_begin_does_not_begin() {
    let shown = Shown::from_now();
    let corridor = Corridor::obeying("");
    corridor.ledger.claim.after(secs(1), Ok(Claim::Won(WON)));
    let walk = corridor.with(corridor.execute(), 0.5, || corridor.host.freeze(LONG));
    let (verdict, _) = ran(walk.await);
    assert_eq!((verdict.ending.words(), verdict.crashed), (INTERRUPTED, true));
    assert_eq!(corridor.log.count("run"), 0);
    assert_eq!(shown.lines(Level::WARN, "before the run could begin"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_does_not_begin_at_the_very_end_of_its_licence() {
    for (left, runs) in [(0, 0), (1, 1)] {
        let corridor = Corridor::succeeding("");
        let late = LICENCE - Duration::from_millis(left);
        corridor.ledger.claim.after(late, Ok(Claim::Won(WON)));
        ran(corridor.execute().await);
        assert_eq!(corridor.log.count("run"), runs);
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_wakes_with_all_its_limits_passed_has_lost_its_lease() {
    // The watchers look at the clock each second, and in any order.
    for tenth in 0..20 {
        let corridor = Corridor::obeying("");
        let at = 5.0 + 0.1 * f64::from(tenth);
        let walk = corridor.with(corridor.execute(), at, || corridor.host.freeze(LONG));
        let (verdict, _) = ran(walk.await);
        assert_eq!(verdict.error.as_deref(), Some("interrupted: lease_lost"), "{at}");
        assert_eq!(verdict.ending.words(), INTERRUPTED);
        assert!(corridor.log.elapsed() <= secs(9), "it learns of that within a second");
    }
}

/// On real threads: the lock is kept on another runtime, which may notice the freeze first.
#[test]
fn a_run_that_wakes_from_a_freeze_is_interrupted_and_has_not_timed_out() {
    let runtimes = Runtimes::start(&JobSet::new(Vec::new(), TTL)).unwrap();
    runtimes.run(async |homes| {
        let mut corridor = Corridor::new("", |ctx, around| async move {
            around.host.freeze(LONG);
            ctx.cancelled().await;
            Ok(())
        });
        let (lock, host) = (corridor.lock.clone(), corridor.host.clone());
        corridor.executor.locks = Locks::new(lock, host, homes.keepalive.clone());
        corridor.executor.homes = homes;
        assert_eq!(recorded(corridor.execute().await), INTERRUPTED);
    });
}

#[tokio::test(start_paused = true)]
async fn a_drain_right_after_a_freeze_finds_the_lease_lost() {
    let corridor = Corridor::obeying("");
    let wake = || {
        corridor.host.freeze(LONG);
        corridor.drain().interrupt();
    };
    let (verdict, _) = ran(corridor.with(corridor.execute(), 5.5, wake).await);
    assert_eq!(verdict.error.as_deref(), Some("interrupted: lease_lost"));
    assert!(verdict.crashed);
    assert_eq!(corridor.log.times("gone"), [5_500]);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_gone_after_a_freeze_is_a_lost_lease() {
    let corridor = Corridor::obeying("");
    corridor.lock.renew.after(Duration::from_millis(700), Ok(Some(RenewOutcome::NotMine)));
    let walk = corridor.with(corridor.execute(), 10.5, || corridor.host.freeze(LONG));
    let (verdict, _) = ran(walk.await);
    assert_eq!(verdict.error.as_deref(), Some("interrupted: lease_lost"));
    assert_eq!(corridor.log.times("gone"), [10_700]);
}

#[tokio::test(start_paused = true)]
async fn a_cancellation_that_arrives_after_a_freeze_is_a_lost_lease() {
    let corridor = Corridor::obeying("");
    let answer = Heartbeat::Alive { cancel_requested: true };
    corridor.ledger.heartbeat.after(Duration::from_millis(700), Ok(answer));
    let walk = corridor.with(corridor.execute(), 10.5, || corridor.host.freeze(LONG));
    let (verdict, _) = ran(walk.await);
    assert_eq!(verdict.error.as_deref(), Some("interrupted: lease_lost"));
    assert_eq!(corridor.log.times("gone"), [10_700]);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_after_the_end_of_the_licence_does_not_bring_it_back() {
    let corridor = Corridor::obeying("");
    // So that the heartbeats look at the clock at other moments than the other watchers.
    corridor.ledger.heartbeat.then(Err(busy()));
    let walk = corridor.with(corridor.execute(), 12.2, || corridor.host.freeze(secs(15)));
    let (verdict, _) = ran(walk.await);
    assert_eq!(verdict.error.as_deref(), Some("interrupted: lease_lost"));
    assert_eq!(corridor.log.times("heartbeat"), [10_000, 12_500]);
    assert_eq!(corridor.log.times("gone"), [12_500]);
}

#[tokio::test(start_paused = true)]
async fn a_short_freeze_does_no_harm() {
    let corridor = Corridor::taking(secs(30), "");
    let walk = corridor.with(corridor.execute(), 9.5, || corridor.host.freeze(secs(10)));
    assert_eq!(recorded(walk.await), (State::Succeeded, None));
}

/// How a run is recorded that freezes for so long and then ends at once.
async fn after_freeze(span: Duration, end: fn() -> Result<(), JobError>) -> (State, Option<Reason>) {
    let corridor = Corridor::new("max_attempts = 2", move |_, around| async move {
        around.host.freeze(span);
        end()
    });
    recorded(corridor.execute().await)
}

#[tokio::test(start_paused = true)]
async fn an_error_that_may_heal_right_after_a_freeze_is_an_interruption() {
    assert_eq!(after_freeze(LONG, || Err(JobError::retry("timed out"))).await, INTERRUPTED);
    assert_eq!(after_freeze(LONG, || panic!("timed out")).await, INTERRUPTED);
    // From the very end of the licence on.
    assert_eq!(after_freeze(LICENCE, || Err(JobError::retry("timed out"))).await, INTERRUPTED);
    let before = LICENCE - Duration::from_millis(1);
    let retried = (State::Queued, Some(Reason::Retry));
    assert_eq!(after_freeze(before, || Err(JobError::retry("timed out"))).await, retried);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_no_retry_would_change_stays_the_jobs_own_after_a_freeze() {
    assert_eq!(after_freeze(LONG, || Ok(())).await, (State::Succeeded, None));
    let failed = (State::Failed, Some(Reason::Error));
    assert_eq!(after_freeze(LONG, || Err(JobError::fail("no such account"))).await, failed);
}

#[tokio::test(start_paused = true)]
async fn a_result_after_a_stop_does_not_count_even_if_it_is_a_success() {
    let corridor = Corridor::new("", |ctx, around| async move {
        around.host.freeze(LONG);
        ctx.cancelled().await;
        Ok(())
    });
    assert_eq!(recorded(corridor.execute().await), INTERRUPTED);
}
