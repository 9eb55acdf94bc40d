//! What becomes of a firing that does not get the lock.

use std::time::Duration;

use lockcore::{AcquireOutcome, Holder};
use tracing::Level;

use super::answers::{away, busy};
use super::fixture::{Corridor, SUBJECT, TTL, ran, secs};
use super::ledger::found;
use super::lock::{held_for, unreachable};
use super::shown::Shown;
use crate::engine::executor::Fate;
use crate::firing::{Origin, Reason, State};
use crate::ledger::{Claim, Skipped};

/// A corridor whose lock is held for as long as the test lasts, for another firing.
fn held(settings: &str) -> Corridor {
    let corridor = Corridor::succeeding(settings);
    corridor.lock.acquire.always(|| Ok(Some(held_for("2027-01-15T07:00:00Z"))));
    corridor
}

/// A corridor whose lock server is away.
fn without_server(settings: &str) -> Corridor {
    let corridor = Corridor::succeeding(settings);
    corridor.lock.acquire.always(unreachable);
    corridor
}

/// Asserts that the walk lasted for one ttl and no longer than one pause more.
#[track_caller]
fn assert_lasted_one_ttl(corridor: &Corridor) {
    let lasted = corridor.log.elapsed();
    assert!(lasted >= TTL && lasted <= TTL + Duration::from_millis(600), "{lasted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lock_held_for_this_very_firing_of_the_schedule_leaves_nothing_to_do() {
    let corridor = Corridor::succeeding("");
    corridor.lock.acquire.then(Ok(Some(held_for(SUBJECT))));
    assert!(matches!(corridor.execute().await, Fate::Elsewhere));
    assert_eq!(corridor.log.events(), ["acquire"]);
    assert!(!corridor.has_given_turn().await);
}

#[tokio::test(start_paused = true)]
async fn a_lock_held_for_this_firing_does_not_tell_a_queued_or_caught_up_one_anything() {
    let corridor = Corridor::succeeding("");
    corridor.lock.acquire.then(Ok(Some(held_for(SUBJECT)))).then(Ok(Some(held_for(SUBJECT))));
    ran(corridor.execute_queued().await);
    assert_eq!(corridor.log.count("acquire"), 3);
    let corridor = Corridor::succeeding("");
    corridor.lock.acquire.then(Ok(Some(held_for(SUBJECT))));
    assert!(matches!(corridor.execute_fresh(Origin::CatchUp).await, Fate::Skipped(Reason::Overlap)));
}

#[tokio::test(start_paused = true)]
async fn a_done_marker_leaves_nothing_to_do() {
    let corridor = Corridor::succeeding("");
    corridor.lock.acquire.then(Ok(Some(AcquireOutcome::Done)));
    assert!(matches!(corridor.execute().await, Fate::Elsewhere));
    assert_eq!(corridor.log.events(), ["acquire"]);
}

#[tokio::test(start_paused = true)]
async fn a_held_lock_skips_only_what_overlaps_a_run_in_the_ledger() {
    let corridor = held("");
    assert!(matches!(corridor.execute().await, Fate::Skipped(Reason::Overlap)));
    let skip = corridor.ledger.skips.one();
    assert_eq!((skip.reason, skip.only_while_running), (Reason::Overlap, true));
    assert_eq!(skip.firing, corridor.firing(Origin::Schedule));
    assert_eq!(corridor.log.events(), ["acquire", "skip"]);
}

#[tokio::test(start_paused = true)]
async fn each_answer_to_a_skip_has_its_fate() {
    let fate = async |skipped| {
        let corridor = Corridor::succeeding("");
        corridor.ledger.claim.then(Ok(Claim::Paused));
        corridor.ledger.skip.then(Ok(skipped));
        corridor.execute().await
    };
    assert!(matches!(fate(Skipped::Recorded).await, Fate::Skipped(Reason::Paused)));
    assert!(matches!(fate(Skipped::AlreadyThere(State::Running.into())).await, Fate::Elsewhere));
    assert!(matches!(fate(Skipped::NothingRunning).await, Fate::LetGo));
    assert!(matches!(fate(Skipped::Refused).await, Fate::Refused));
}

#[tokio::test(start_paused = true)]
async fn a_skip_is_counted_by_its_reason() {
    let shown = Shown::from_now();
    let corridor = held("");
    corridor.execute().await;
    let skips = shown.value("runner_firings_total{job=\"job\",state=\"skipped\",reason=\"overlap\"}");
    assert_eq!(skips, 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_held_lock_without_a_run_is_tried_for_one_ttl_and_then_let_go() {
    let corridor = held("");
    corridor.ledger.skip.always(|| Ok(Skipped::NothingRunning));
    assert!(matches!(corridor.execute().await, Fate::LetGo));
    assert_lasted_one_ttl(&corridor);
    let tries = corridor.log.times("acquire");
    assert!(tries.windows(2).all(|pair| (2..=501).contains(&(pair[1] - pair[0]))), "{tries:?}");
    assert_eq!(corridor.log.count("skip"), tries.len());
    assert_eq!(corridor.log.count("claim"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_try_when_the_ttl_is_just_over_is_the_last() {
    let tries = async |frozen: Duration| {
        let corridor = held("");
        corridor.ledger.skip.always(|| Ok(Skipped::NothingRunning));
        corridor.with(corridor.execute(), 0.001, || corridor.host.freeze(frozen)).await;
        corridor.log.times("acquire")
    };
    let second = Duration::from_millis(u64::try_from(tries(Duration::ZERO).await[1]).unwrap());
    assert_eq!(tries(TTL - second).await.len(), 2);
    assert!(tries(TTL - second - Duration::from_millis(1)).await.len() > 2);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_becomes_free_is_taken() {
    let corridor = Corridor::succeeding("");
    corridor.lock.acquire.then(Ok(Some(held_for("another"))));
    corridor.ledger.skip.always(|| Ok(Skipped::NothingRunning));
    ran(corridor.execute().await);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_closes_ends_the_wait_for_a_lock() {
    let corridor = held("");
    corridor.ledger.skip.always(|| Ok(Skipped::NothingRunning));
    let fate = corridor.with(corridor.execute(), 5.0, || corridor.drain().close()).await;
    assert!(matches!(fate, Fate::Drained));
    assert_eq!(corridor.log.elapsed(), secs(5));
}

#[tokio::test(start_paused = true)]
async fn neither_a_queued_firing_nor_one_that_may_overlap_is_skipped_for_an_overlap() {
    let corridor = held("");
    assert!(matches!(corridor.execute_queued().await, Fate::LetGo));
    assert_eq!(corridor.log.count("skip"), 0);
    let corridor = held("overlap = \"allow\"");
    assert!(matches!(corridor.execute().await, Fate::LetGo));
    assert_eq!(corridor.log.count("skip"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_overlap_that_cannot_be_recorded_is_tried_again_when_the_ledger_is_back() {
    let corridor = held("");
    corridor.ledger.skip.then(Err(away()));
    let fate = corridor.with(corridor.execute(), 4.0, || corridor.ledger_answers()).await;
    assert!(matches!(fate, Fate::Skipped(Reason::Overlap)));
    assert_eq!(corridor.log.times("skip"), [0, 4_000]);
}

#[tokio::test(start_paused = true)]
async fn an_overlap_that_the_ledger_finds_is_recorded_and_the_lock_given_back() {
    let corridor = Corridor::succeeding("");
    corridor.ledger.claim.then(Ok(Claim::Overlap(found(State::Running))));
    assert!(matches!(corridor.execute().await, Fate::Skipped(Reason::Overlap)));
    assert_eq!(corridor.log.events(), ["acquire", "claim", "skip", "release"]);
    assert!(corridor.has_given_turn().await);
}

#[tokio::test(start_paused = true)]
async fn an_overlap_is_an_alarm_only_with_a_lock_and_only_once() {
    let overlaps = async |settings| {
        let shown = Shown::from_now();
        let corridor = Corridor::succeeding(settings);
        let overlap = || Ok(Claim::Overlap(found(State::Running)));
        corridor.ledger.claim.then(overlap()).then(overlap()).then(overlap());
        ran(corridor.execute_queued().await);
        assert_eq!(corridor.log.count("claim"), 4);
        shown.value("runner_ledger_duplicate_total{job=\"job\",found=\"running\"}")
    };
    assert_eq!(overlaps("").await, 1.0);
    assert_eq!(overlaps("guard = \"ledger\"").await, 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_key_without_an_expiry_is_reported_once() {
    let shown = Shown::from_now();
    let corridor = Corridor::succeeding("");
    corridor.lock.acquire.always(|| {
        let holder = Holder::from_value("maintenance");
        Ok(Some(AcquireOutcome::Held { holder, remaining: None }))
    });
    corridor.ledger.skip.always(|| Ok(Skipped::NothingRunning));
    assert!(matches!(corridor.execute().await, Fate::LetGo));
    assert!(corridor.log.count("acquire") > 10);
    assert_eq!(shown.lines(Level::WARN, "without an expiry"), 1);
    assert_eq!(shown.lines(Level::WARN, "key=\"{runner:test/job}:lock\""), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_expires_is_not_reported() {
    let shown = Shown::from_now();
    held("").execute().await;
    assert_eq!(shown.lines(Level::WARN, "without an expiry"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_job_goes_by_the_ledger_alone_when_the_lock_server_is_away() {
    let shown = Shown::from_now();
    let corridor = without_server("");
    ran(corridor.execute().await);
    assert_eq!(corridor.log.count("run"), 1);
    // Only lockcore's own clean-up releases the token whose fate is unknown.
    assert!(corridor.lock.marks.all().iter().all(Option::is_none));
    assert_eq!(shown.value("runner_lock_acquire_total{job=\"job\",outcome=\"unavailable\"}"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_needs_the_lock_waits_one_ttl_for_its_server_and_is_skipped() {
    let corridor = without_server("on_unavailable = \"skip\"");
    assert!(matches!(corridor.execute().await, Fate::Skipped(Reason::LockUnavailable)));
    let skip = corridor.ledger.skips.one();
    assert_eq!((skip.reason, skip.only_while_running), (Reason::LockUnavailable, false));
    assert_lasted_one_ttl(&corridor);
    assert_eq!(corridor.log.count("claim"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_queued_firing_that_needs_the_lock_goes_on_waiting() {
    let corridor = without_server("on_unavailable = \"skip\"");
    assert!(matches!(corridor.execute_queued().await, Fate::Waiting));
    assert_eq!(corridor.log.count("skip"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_skip_that_was_not_answered_is_written_again() {
    let corridor = Corridor::succeeding("");
    corridor.ledger.claim.always(|| Ok(Claim::Paused));
    corridor.ledger.skip.then(Err(busy())).then(Err(away()));
    let fate = corridor.with(corridor.execute(), 9.0, || corridor.ledger_answers()).await;
    assert!(matches!(fate, Fate::Skipped(Reason::Paused)));
    assert_eq!(corridor.log.count("skip"), 3);
    assert_eq!(corridor.log.times("skip")[2], 9_000);
}
