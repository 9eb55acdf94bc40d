//! A lock that is gone or someone else's while its run goes on. The ledger decides what that means.

use lockcore::{AcquireOutcome, RenewOutcome};
use tracing::Level;

use super::answers::busy;
use super::fixture::{Corridor, LICENCE, ran, recorded, secs};
use super::lock::{held_for, unreachable};
use super::shown::Shown;
use crate::firing::{Reason, State};
use crate::ledger::Heartbeat;

const INTERRUPTED: (State, Option<Reason>) = (State::Queued, Some(Reason::Interrupted));

/// The lock's server has lost the key: the first renewal says so, and the key is free.
fn flushed(corridor: &Corridor) {
    corridor.lock.renew.then(Ok(Some(RenewOutcome::NotMine)));
    corridor.lock.renew.always(|| Ok(Some(RenewOutcome::Renewed)));
    corridor.lock.acquire.then(Ok(None)).then(Ok(Some(AcquireOutcome::Acquired)));
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_lock_is_gone_asks_the_ledger_at_once_and_takes_the_lock_again() {
    let shown = Shown::from_now();
    let corridor = Corridor::taking(secs(35), "");
    flushed(&corridor);
    assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
    // A heartbeat is due at 10 s anyway; the one that is asked for at once is the next.
    assert_eq!(corridor.log.times("acquire"), [0, 10_000]);
    assert!(corridor.log.times("heartbeat").iter().filter(|at| **at == 10_000).count() >= 1);
    assert_eq!(shown.value("runner_lock_lost_total{job=\"job\",reason=\"not_mine\"}"), 1.0);
    assert_eq!(shown.value("runner_lock_renewals_total{outcome=\"not_mine\"}"), 1.0);
    assert_eq!(shown.lines(Level::WARN, "degraded"), 1);
    assert_eq!(corridor.log.count("release"), 1, "the new lock is released");
}

#[tokio::test(start_paused = true)]
async fn the_lock_is_not_taken_again_before_the_ledger_has_confirmed_the_lease() {
    let corridor = Corridor::taking(secs(35), "");
    flushed(&corridor);
    corridor.ledger.heartbeat.then(Err(busy())).then(Err(busy()));
    assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
    let confirmed = corridor.log.times("heartbeat")[2];
    assert!(confirmed > 10_000);
    assert_eq!(corridor.log.times("acquire"), [0, confirmed]);
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_lock_is_gone_and_whose_row_is_someone_elses_stops() {
    let corridor = Corridor::obeying("");
    flushed(&corridor);
    corridor.ledger.heartbeat.always(|| Ok(Heartbeat::Lost));
    let (verdict, _) = ran(corridor.execute().await);
    assert_eq!((verdict.ending.words(), verdict.crashed), (INTERRUPTED, true));
    assert_eq!(verdict.error.as_deref(), Some("interrupted: lease_lost"));
    assert_eq!(corridor.log.times("gone"), [10_000]);
    assert_eq!(corridor.log.count("acquire"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_lock_is_gone_works_without_an_answer_until_its_licence_ends() {
    let corridor = Corridor::obeying("");
    flushed(&corridor);
    corridor.ledger.heartbeat.always(|| Err(busy()));
    let (verdict, _) = ran(corridor.execute().await);
    assert_eq!(verdict.error.as_deref(), Some("interrupted: lease_lost"));
    assert_eq!(corridor.log.times("gone"), [LICENCE.as_millis()]);
    assert_eq!(corridor.log.count("acquire"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_someone_has_is_tried_for_at_each_third_of_the_ttl() {
    let shown = Shown::from_now();
    let corridor = Corridor::taking(secs(45), "");
    corridor.lock.renew.then(Ok(Some(RenewOutcome::NotMine)));
    let held = || Ok(Some(held_for("2027-01-15T09:00:00Z")));
    corridor.lock.acquire.then(Ok(None)).then(held()).then(unreachable()).then(held());
    corridor.lock.renew.always(|| Ok(Some(RenewOutcome::Renewed)));
    assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
    assert_eq!(corridor.log.times("acquire"), [0, 10_000, 20_000, 30_000, 40_000]);
    assert_eq!(shown.value("runner_lock_lost_total{job=\"job\",reason=\"not_mine\"}"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_was_never_ours_again_is_not_released_and_no_mismatch() {
    let shown = Shown::from_now();
    let corridor = Corridor::taking(secs(15), "");
    corridor.lock.renew.then(Ok(Some(RenewOutcome::NotMine)));
    corridor.lock.acquire.then(Ok(None)).then(Ok(Some(held_for("2027-01-15T09:00:00Z"))));
    assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
    assert_eq!(corridor.log.count("release"), 0);
    assert_eq!(shown.value("runner_lock_release_mismatch_total{job=\"job\"}"), 0.0);
    assert_eq!(shown.value("runner_lock_hold_seconds_count{job=\"job\"}"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_asked_to_stop_takes_no_lock_again() {
    let corridor = Corridor::taking(secs(13), "timeout = \"9s\"");
    flushed(&corridor);
    assert_eq!(recorded(corridor.execute().await), (State::Failed, Some(Reason::Timeout)));
    assert_eq!(corridor.log.count("acquire"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_taken_again_within_its_cap_only() {
    let corridor = Corridor::obeying("max_renewals = 1");
    flushed(&corridor);
    let (verdict, _) = ran(corridor.execute().await);
    assert_eq!(verdict.ending.words(), (State::Failed, Some(Reason::Timeout)));
    let asked = corridor.lock.acquires.all();
    // The first renewal is due at 10 s and may run to the end of the lock's life, 40 s after it was taken.
    assert_eq!(asked.iter().map(|request| request.ttl).collect::<Vec<_>>(), [secs(30), secs(30)]);
    assert_ne!(asked[0].token, asked[1].token);
    assert_eq!(corridor.log.count("renew"), 1, "the retake was the last renewal");
}

#[tokio::test(start_paused = true)]
async fn the_retake_of_a_first_firing_reads_the_done_marker() {
    for (queued, marker) in [(false, Some("2027-01-15T08:00:00Z")), (true, None)] {
        let corridor = Corridor::taking(secs(15), "");
        flushed(&corridor);
        ran(if queued { corridor.execute_queued().await } else { corridor.execute().await });
        assert_eq!(corridor.lock.acquires.all()[1].unless_done.as_deref(), marker);
    }
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_may_be_lost_while_its_server_was_away_is_asked_about_again() {
    let corridor = Corridor::taking(secs(50), "");
    corridor.lock.renew.always(unreachable);
    let taken = || corridor.lock.renew.always(|| Ok(Some(RenewOutcome::NotMine)));
    let fate = corridor.with(corridor.execute(), 30.0, taken).await;
    assert_eq!(recorded(fate), (State::Succeeded, None));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_needs_the_lock_stops_at_once_and_that_is_no_crash() {
    let corridor = Corridor::obeying("on_unavailable = \"skip\"");
    flushed(&corridor);
    let (verdict, _) = ran(corridor.execute().await);
    assert_eq!((verdict.ending.words(), verdict.crashed), (INTERRUPTED, false));
    assert_eq!(verdict.error.as_deref(), Some("interrupted: lock_lost"));
    assert_eq!(corridor.log.times("gone"), [10_000]);
    assert_eq!(corridor.log.count("acquire"), 1);
}
