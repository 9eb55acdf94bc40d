//! Step four: what is claimed, and what becomes of each answer.

use std::time::Duration;

use tracing::Level;

use super::answers::{away, busy};
use super::fixture::{Corridor, INTERRUPTED, TTL, ran, recorded, secs};
use super::ledger::{RUN, WON, found};
use super::shown::Shown;
use crate::engine::executor::Fate;
use crate::firing::{Delivery, FiringId, Origin, Reason, State};
use crate::ledger::{Claim, Entry, Heartbeat, LedgerError};

#[tokio::test(start_paused = true)]
async fn a_claim_names_the_firing_its_owner_its_terms_and_its_lease() {
    let corridor =
        Corridor::succeeding("jitter = \"1ms\"\nstart_deadline = \"20s\"\ndelivery = \"at_most_once\"");
    ran(corridor.execute().await);
    let claim = corridor.ledger.claims.one();
    assert_eq!(claim.firing, corridor.firing(Origin::Schedule));
    assert_eq!(claim.entry, Entry::Fresh { not_after: Duration::from_millis(20_001) });
    assert_eq!(claim.owner, corridor.executor.instance);
    assert!(claim.exclusive);
    assert_eq!((claim.delivery, claim.lease), (Delivery::AtMostOnce, TTL));
}

#[tokio::test(start_paused = true)]
async fn a_claim_takes_the_row_of_a_queued_firing() {
    let corridor = Corridor::succeeding("");
    ran(corridor.execute_queued().await);
    assert_eq!(corridor.ledger.claims.one().entry, Entry::Queued(FiringId(7)));
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_a_job_that_may_overlap_is_not_exclusive() {
    let corridor = Corridor::succeeding("overlap = \"allow\"");
    ran(corridor.execute().await);
    assert!(!corridor.ledger.claims.one().exclusive);
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_is_elsewhere_and_counts_if_the_lock_let_it_through() {
    for (state, running, ended) in
        [(State::Running, 1.0, 0.0), (State::Succeeded, 0.0, 1.0), (State::Queued, 0.0, 0.0)]
    {
        let shown = Shown::from_now();
        let corridor = Corridor::succeeding("");
        corridor.ledger.claim.then(Ok(Claim::Duplicate(found(state))));
        assert!(matches!(corridor.execute().await, Fate::Elsewhere));
        assert_eq!(corridor.log.events(), ["acquire", "claim", "release"]);
        assert_eq!(corridor.lock.marks.one(), None);
        let duplicates =
            |found| shown.value(&format!("runner_ledger_duplicate_total{{job=\"job\",found=\"{found}\"}}"));
        assert_eq!((duplicates("running"), duplicates("ended")), (running, ended), "{state}");
        assert_eq!(shown.value("runner_ledger_claims_total{job=\"job\",outcome=\"duplicate\"}"), 1.0);
    }
}

#[tokio::test(start_paused = true)]
async fn a_running_duplicate_is_normal_without_a_lock() {
    let shown = Shown::from_now();
    let corridor = Corridor::succeeding("guard = \"ledger\"");
    corridor.ledger.claim.then(Ok(Claim::Duplicate(found(State::Running))));
    assert!(matches!(corridor.execute().await, Fate::Elsewhere));
    assert_eq!(shown.value("runner_ledger_duplicate_total{job=\"job\",found=\"running\"}"), 0.0);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_ahead_by_half_a_ttl_waits_with_the_lock() {
    let corridor = Corridor::succeeding("");
    corridor.ledger.claim.then(Ok(Claim::TooEarly(TTL / 2)));
    ran(corridor.execute().await);
    assert_eq!(corridor.log.times("claim"), [0, 15_000]);
    assert_eq!(corridor.log.count("acquire"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_further_ahead_waits_without_the_lock() {
    let corridor = Corridor::succeeding("");
    corridor.ledger.claim.then(Ok(Claim::TooEarly(secs(16))));
    ran(corridor.execute().await);
    assert_eq!(corridor.log.times("claim"), [0, 16_000]);
    assert_eq!(corridor.log.times("release")[0], 0);
    assert_eq!(corridor.log.count("acquire"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_firing_that_is_too_late_or_paused_is_skipped_for_that_reason() {
    for (claim, reason) in [(Claim::TooLate, Reason::Missed), (Claim::Paused, Reason::Paused)] {
        let corridor = Corridor::succeeding("");
        corridor.ledger.claim.then(Ok(claim));
        assert!(matches!(corridor.execute().await, Fate::Skipped(why) if why == reason));
        let skip = corridor.ledger.skips.one();
        assert_eq!((skip.reason, skip.only_while_running), (reason, false));
        assert_eq!(corridor.log.events(), ["acquire", "claim", "skip", "release"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_queued_firing_that_cannot_run_now_keeps_its_row() {
    let corridor = Corridor::succeeding("");
    corridor.ledger.claim.then(Ok(Claim::Paused));
    assert!(matches!(corridor.execute_queued().await, Fate::Waiting));
    assert_eq!(corridor.log.count("skip"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_pruned_firing_is_refused_and_gets_no_row() {
    let corridor = Corridor::succeeding("");
    corridor.ledger.claim.then(Ok(Claim::Pruned));
    assert!(matches!(corridor.execute().await, Fate::Refused));
    assert_eq!(corridor.log.events(), ["acquire", "claim", "release"]);
}

#[tokio::test(start_paused = true)]
async fn a_job_that_the_ledger_does_not_know_yet_is_claimed_again_after_a_second() {
    let corridor = Corridor::succeeding("");
    corridor.ledger.claim.then(Ok(Claim::Unregistered)).then(Ok(Claim::Unregistered));
    ran(corridor.execute().await);
    assert_eq!(corridor.log.times("claim"), [0, 1_000, 2_000]);
    assert_eq!(corridor.log.count("acquire"), 3);
}

#[tokio::test(start_paused = true)]
async fn a_claim_without_an_answer_does_not_run_before_it_is_confirmed_and_alive() {
    let corridor = Corridor::succeeding("");
    corridor.ledger.claim.then(Err(busy()));
    corridor.ledger.confirm.then(Ok(Some(WON)));
    ran(corridor.execute().await);
    let events = ["acquire", "claim", "confirm", "heartbeat", "run", "gone", "settle", "release"];
    assert_eq!(corridor.log.events(), events);
    assert_eq!(corridor.ledger.heartbeats.one(), (RUN, TTL));
    assert_eq!(corridor.ledger.confirms.one().claim_id, corridor.ledger.claims.one().claim_id);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_answered_runs_without_a_heartbeat() {
    let corridor = Corridor::succeeding("");
    ran(corridor.execute().await);
    assert_eq!(corridor.log.events(), ["acquire", "claim", "run", "gone", "settle", "release"]);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_was_not_confirmed_is_made_again_under_the_same_id() {
    let shown = Shown::from_now();
    let corridor = Corridor::succeeding("");
    corridor.ledger.claim.then(Err(busy()));
    ran(corridor.execute().await);
    let claims = corridor.ledger.claims.all();
    assert_eq!(claims.len(), 2);
    assert_eq!(claims[0].claim_id, claims[1].claim_id);
    // The lock is given back meanwhile, and the first claim may have won: the run has to be alive still.
    let events = [
        "acquire",
        "claim",
        "confirm",
        "release",
        "acquire",
        "claim",
        "heartbeat",
        "run",
        "gone",
        "settle",
        "release",
    ];
    assert_eq!(corridor.log.events(), events);
    let pause = corridor.log.times("claim")[1];
    assert!((2..=1_000).contains(&pause), "{pause}");
    assert_eq!(shown.value("runner_ledger_claims_total{job=\"job\",outcome=\"unknown\"}"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_confirmation_without_an_answer_makes_the_replica_wait_for_the_ledger() {
    let corridor = Corridor::succeeding("");
    corridor.ledger.claim.then(Err(busy()));
    corridor.ledger.confirm.then(Err(away()));
    let there = || assert!(!corridor.is_ledger_there());
    let walk = corridor.with(corridor.execute(), 7.0, there);
    ran(corridor.with(walk, 8.0, || corridor.ledger_answers()).await);
    assert_eq!(corridor.log.times("claim"), [0, 8_000]);
}

#[tokio::test(start_paused = true)]
async fn an_uncertain_run_that_somebody_else_has_by_now_does_not_begin() {
    let corridor = Corridor::succeeding("");
    corridor.ledger.claim.then(Err(busy()));
    corridor.ledger.confirm.then(Ok(Some(WON)));
    corridor.ledger.heartbeat.then(Ok(Heartbeat::Lost));
    assert!(matches!(corridor.execute().await, Fate::Elsewhere));
    assert_eq!(corridor.log.count("run"), 0);
}

#[tokio::test(start_paused = true)]
async fn an_uncertain_run_whose_heartbeat_has_no_answer_is_claimed_again() {
    let corridor = Corridor::succeeding("");
    corridor.ledger.claim.then(Err(busy()));
    corridor.ledger.confirm.then(Ok(Some(WON)));
    corridor.ledger.heartbeat.then(Err(busy()));
    ran(corridor.execute().await);
    assert_eq!(corridor.log.times("claim"), [0, 200]);
    assert_eq!(corridor.log.count("run"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_of_an_uncertain_run_that_finds_no_ledger_stops_the_contending() {
    let corridor = Corridor::succeeding("");
    corridor.ledger.claim.then(Err(busy()));
    corridor.ledger.confirm.then(Ok(Some(WON)));
    corridor.ledger.heartbeat.then(Err(away()));
    ran(corridor.with(corridor.execute(), 9.0, || corridor.ledger_answers()).await);
    assert_eq!(corridor.log.times("claim"), [0, 9_000]);
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_a_claim_counts_from_before_it_was_sent() {
    let corridor = Corridor::obeying("");
    corridor.ledger.claim.after(secs(20), Ok(Claim::Won(WON)));
    corridor.ledger.heartbeat.always(|| Err(busy()));
    assert_eq!(recorded(corridor.execute().await), INTERRUPTED);
    assert_eq!(corridor.log.times("gone"), [24_695]);
}

#[tokio::test(start_paused = true)]
async fn the_lease_of_an_uncertain_claim_counts_from_before_its_heartbeat() {
    let corridor = Corridor::obeying("");
    corridor.ledger.claim.after(secs(20), Err(busy()));
    corridor.ledger.confirm.then(Ok(Some(WON)));
    corridor.ledger.heartbeat.after(secs(2), Ok(Heartbeat::Alive { cancel_requested: false }));
    corridor.ledger.heartbeat.always(|| Err(busy()));
    assert_eq!(recorded(corridor.execute().await), INTERRUPTED);
    assert_eq!(corridor.log.times("gone"), [44_695]);
}

#[tokio::test(start_paused = true)]
async fn a_refused_claim_is_logged_as_an_error_and_no_answer_as_a_warning() {
    fn refused() -> LedgerError {
        LedgerError::Refused { doing: "test", source: "permission denied".into() }
    }
    for (error, warnings, errors) in
        [(busy as fn() -> LedgerError, 1, 0), (away as fn() -> LedgerError, 1, 0), (refused, 0, 1)]
    {
        let shown = Shown::from_now();
        let corridor = Corridor::succeeding("");
        corridor.ledger.claim.then(Err(error()));
        ran(corridor.execute().await);
        assert_eq!(shown.lines(Level::WARN, "claim without an answer"), warnings);
        assert_eq!(shown.lines(Level::ERROR, "claim refused"), errors);
    }
}
