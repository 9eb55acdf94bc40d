//! Step five: what a run is told, what stops it, and why.

use std::sync::mpsc;
use std::time::Duration;

use tokio::time::sleep;
use tracing::Level;

use super::answers::busy;
use super::fixture::{Corridor, GRACE, Host, INTERRUPTED, STUCK_EXIT, ran, recorded, secs};
use super::ledger::WON;
use super::shown::Shown;
use crate::engine::runtimes::Homes;
use crate::firing::{Origin, Reason, State};
use crate::job::JobError;
use crate::ledger::{Claim, Won};

/// Longer than every limit of the job.
const LONG: Duration = Duration::from_secs(3_600);

#[tokio::test(start_paused = true)]
async fn a_run_is_told_who_it_is_and_how_long_it_may_take() {
    let corridor = Corridor::new("timeout = \"20s\"", |ctx, _| async move {
        assert_eq!((ctx.job(), ctx.scheduled_at()), ("job", Host::WALL));
        assert_eq!((ctx.fence(), ctx.attempt()), (WON.fence, WON.attempt));
        assert_eq!((ctx.shard(), ctx.shards(), ctx.origin()), (0, 1, Origin::Schedule));
        assert_eq!(ctx.deadline(), Host::BEGAN + secs(23));
        assert!(ctx.idempotency_key().starts_with("test/job/"));
        Ok(())
    });
    corridor.ledger.claim.after(secs(3), Ok(Claim::Won(WON)));
    assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
}

#[tokio::test(start_paused = true)]
async fn a_run_is_told_a_little_less_than_its_grace() {
    for (settings, told) in [("", 4_500), ("kill_grace = \"2s\"", 1_500), ("kill_grace = \"1s\"", 750)] {
        let corridor = Corridor::new(settings, move |ctx, _| async move {
            assert_eq!(ctx.kill_grace(), Duration::from_millis(told));
            Ok(())
        });
        assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_is_asked_to_stop_at_its_timeout_which_counts_from_its_start() {
    let corridor = Corridor::obeying("timeout = \"20s\"");
    corridor.ledger.claim.after(secs(3), Ok(Claim::Won(WON)));
    let (verdict, _) = ran(corridor.execute().await);
    assert_eq!(verdict.ending.words(), (State::Failed, Some(Reason::Timeout)));
    assert_eq!(verdict.error.as_deref(), Some("ran longer than its timeout of 20s"));
    assert_eq!(corridor.log.times("gone"), [23_000]);
}

#[tokio::test(start_paused = true)]
async fn a_drain_interrupts_a_run_and_does_not_count_as_a_crash() {
    let shown = Shown::from_now();
    let corridor = Corridor::obeying("");
    let (verdict, _) = ran(corridor.with(corridor.execute(), 2.0, || corridor.drain().interrupt()).await);
    assert_eq!((verdict.ending.words(), verdict.crashed), (INTERRUPTED, false));
    assert_eq!(corridor.log.times("gone"), [2_000]);
    assert_eq!(shown.lines(Level::WARN, "did not acknowledge"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_closed_replica_lets_its_runs_finish() {
    let corridor = Corridor::taking(secs(5), "");
    let fate = corridor.with(corridor.execute(), 2.0, || corridor.drain().close()).await;
    assert_eq!(recorded(fate), (State::Succeeded, None));
}

#[tokio::test(start_paused = true)]
async fn the_first_cause_stays() {
    let corridor = Corridor::taking(secs(13), "timeout = \"10s\"");
    let (verdict, _) = ran(corridor.with(corridor.execute(), 9.0, || corridor.drain().interrupt()).await);
    assert_eq!(verdict.error.as_deref(), Some("interrupted: drain"));
}

#[tokio::test(start_paused = true)]
async fn a_result_at_the_moment_of_a_loss_counts() {
    let corridor = Corridor::new("", |_, around| async move {
        around.drain.interrupt();
        Ok(())
    });
    assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_does_not_stop_within_its_grace_is_dropped() {
    let corridor = Corridor::taking(LONG, "timeout = \"10s\"");
    assert_eq!(recorded(corridor.execute().await), (State::Failed, Some(Reason::Timeout)));
    assert_eq!(corridor.log.times("gone"), [(secs(10) + GRACE).as_millis()]);
    assert!(!corridor.drain().is_closing());
}

#[tokio::test(start_paused = true)]
async fn a_run_that_stops_within_its_grace_is_not_dropped() {
    let corridor = Corridor::new("timeout = \"10s\"", |ctx, _| async move {
        ctx.cancelled().await;
        sleep(Duration::from_millis(4_900)).await;
        Err(JobError::fail("stopped in order"))
    });
    let (verdict, _) = ran(corridor.execute().await);
    assert!(verdict.error.unwrap().contains("stopped in order"));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_be_dropped_makes_the_replica_leave() {
    let shown = Shown::from_now();
    let (free, blocked) = mpsc::channel::<()>();
    let blocked = std::sync::Mutex::new(blocked);
    let blocked = std::sync::Arc::new(blocked);
    let mut corridor = Corridor::new("timeout = \"10s\"", move |_, _| {
        let blocked = blocked.clone();
        async move {
            blocked.lock().unwrap().recv().ok();
            Ok(())
        }
    });
    let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    corridor.executor.homes = Homes::all_on(threads.handle());
    let leaves = async {
        // The time stands still until the run has begun.
        while corridor.log.count("run") == 0 {
            tokio::task::yield_now().await;
        }
        corridor.drain().stuck().await;
        let left = corridor.log.elapsed();
        assert_eq!(shown.value("runner_stuck_runs"), 1.0);
        assert_eq!(corridor.log.count("settle"), 0);
        free.send(()).unwrap();
        left
    };
    let (fate, left) = tokio::join!(corridor.execute(), leaves);
    assert_eq!(left, secs(10) + GRACE + secs(1) + STUCK_EXIT);
    assert_eq!(recorded(fate), (State::Failed, Some(Reason::Timeout)));
    assert!(corridor.log.count("heartbeat") > 50, "the lease is kept as long as it may act");
    threads.shutdown_background();
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_with_its_executor() {
    let corridor = Corridor::taking(LONG, "");
    assert!(tokio::time::timeout(secs(5), corridor.execute()).await.is_err());
    sleep(secs(1)).await;
    assert_eq!(corridor.log.count("gone"), 1);
}

#[tokio::test(start_paused = true)]
async fn only_first_runs_of_the_schedule_show_how_late_they_began() {
    let shown = async |attempt, origin| {
        let shown = Shown::from_now();
        let corridor = Corridor::succeeding("");
        corridor.ledger.claim.then(Ok(Claim::Won(Won { attempt, ..WON })));
        ran(corridor.execute_fresh(origin).await);
        shown.value("runner_firing_lateness_seconds_count{job=\"job\"}")
    };
    assert_eq!(shown(1, Origin::Schedule).await, 1.0);
    assert_eq!(shown(1, Origin::CatchUp).await, 1.0);
    assert_eq!(shown(2, Origin::Schedule).await, 0.0);
    assert_eq!(shown(1, Origin::Manual).await, 0.0);
    assert_eq!(shown(1, Origin::Backfill).await, 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_was_asked_for_before_the_licence_ends_is_not_reported_again() {
    let shown = Shown::from_now();
    let corridor = Corridor::taking(secs(28), "timeout = \"23s\"\nkill_grace = \"5s\"");
    corridor.ledger.heartbeat.always(|| Err(busy()));
    assert_eq!(recorded(corridor.execute().await), (State::Failed, Some(Reason::Timeout)));
    assert_eq!(shown.lines(Level::WARN, "did not acknowledge"), 0);
}
