//! The two leases of a run: how they are kept, and what their loss means.

use std::time::Duration;

use lockcore::DoneMark;
use tokio::time::sleep;
use tracing::Level;

use super::answers::{away, busy};
use super::fixture::{Corridor, Host, INTERRUPTED, LICENCE, SUBJECT, TTL, ran, recorded, secs};
use super::ledger::{RUN, WON};
use super::lock::unreachable;
use super::shown::Shown;
use crate::firing::{Origin, Reason, State};
use crate::job::JobError;
use crate::ledger::{Claim, Heartbeat};

fn alive() -> Heartbeat {
    Heartbeat::Alive { cancel_requested: false }
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_is_sent_every_third_of_the_ttl() {
    let corridor = Corridor::taking(secs(35), "");
    ran(corridor.execute().await);
    assert_eq!(corridor.log.times("heartbeat"), [10_000, 20_000, 30_000]);
    assert!(corridor.ledger.heartbeats.all().iter().all(|sent| *sent == (RUN, TTL)));
}

#[tokio::test(start_paused = true)]
async fn the_first_heartbeat_is_due_by_the_age_of_the_claim() {
    let corridor = Corridor::taking(secs(5), "");
    corridor.ledger.claim.after(secs(8), Ok(Claim::Won(WON)));
    ran(corridor.execute().await);
    assert_eq!(corridor.log.times("heartbeat"), [10_000]);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_without_an_answer_is_sent_again_after_a_twelfth_of_the_ttl() {
    let corridor = Corridor::taking(secs(35), "");
    corridor.ledger.heartbeat.then(Err(busy())).after(secs(1), Err(busy()));
    ran(corridor.execute().await);
    assert_eq!(corridor.log.times("heartbeat"), [10_000, 12_500, 16_000, 26_000]);
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_that_finds_no_ledger_stops_the_contending() {
    let corridor = Corridor::taking(secs(12), "");
    corridor.ledger.heartbeat.then(Err(away()));
    ran(corridor.execute().await);
    assert!(!corridor.is_ledger_there());
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_moves_the_licence_from_before_it_was_sent() {
    let corridor = Corridor::new("", |ctx, _| async move {
        let licence = ctx.licence();
        assert_eq!(licence.ends(), Host::BEGAN + LICENCE);
        sleep(secs(14)).await;
        assert_eq!(licence.ends(), Host::BEGAN + LICENCE);
        sleep(secs(2)).await;
        assert_eq!(licence.ends(), Host::BEGAN + secs(10) + LICENCE);
        sleep(secs(5)).await;
        Ok(())
    });
    corridor.ledger.heartbeat.after(secs(5), Ok(alive()));
    assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
    // The next one is due a third of the ttl after the last was sent.
    assert_eq!(corridor.log.times("heartbeat"), [10_000, 20_000]);
}

#[tokio::test(start_paused = true)]
async fn a_run_is_asked_to_stop_when_its_licence_ends() {
    let shown = Shown::from_now();
    let corridor = Corridor::obeying("");
    corridor.ledger.heartbeat.always(|| Err(busy()));
    let (verdict, _) = ran(corridor.execute().await);
    assert_eq!(verdict.ending.words(), INTERRUPTED);
    assert!(verdict.crashed);
    assert_eq!(verdict.error.as_deref(), Some("interrupted: lease_lost"));
    assert_eq!(corridor.log.times("gone"), [LICENCE.as_millis()]);
    assert_eq!(shown.lines(Level::WARN, "did not acknowledge this run's heartbeat in time"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_kept_until_a_run_that_was_asked_to_stop_has_ended() {
    let corridor = Corridor::taking(secs(13), "timeout = \"9s\"");
    assert_eq!(recorded(corridor.execute().await), (State::Failed, Some(Reason::Timeout)));
    assert_eq!(corridor.log.times("heartbeat"), [10_000]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_the_ledger_has_given_away_is_asked_to_stop_at_once() {
    let shown = Shown::from_now();
    let corridor = Corridor::obeying("");
    corridor.ledger.heartbeat.then(Ok(Heartbeat::Lost));
    let (verdict, _) = ran(corridor.execute().await);
    assert_eq!(verdict.error.as_deref(), Some("interrupted: lease_lost"));
    assert_eq!(corridor.log.times("gone"), [10_000]);
    assert_eq!(corridor.log.count("heartbeat"), 1);
    assert_eq!(shown.lines(Level::WARN, "did not acknowledge"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_a_person_wants_cancelled_is_asked_to_stop_by_its_heartbeat() {
    let corridor = Corridor::obeying("");
    corridor.ledger.heartbeat.then(Ok(alive())).then(Ok(Heartbeat::Alive { cancel_requested: true }));
    assert_eq!(recorded(corridor.execute().await), (State::Cancelled, None));
    assert_eq!(corridor.log.times("gone"), [20_000]);
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_lock_cannot_be_renewed_goes_on_under_its_lease() {
    let shown = Shown::from_now();
    let corridor = Corridor::taking(secs(50), "");
    corridor.lock.renew.always(unreachable);
    assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
    assert_eq!(shown.value("runner_lock_lost_total{job=\"job\",reason=\"unreachable\"}"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_needs_the_lock_stops_before_a_lock_without_renewal_expires() {
    let corridor = Corridor::obeying("on_unavailable = \"skip\"");
    corridor.lock.renew.always(unreachable);
    let (verdict, _) = ran(corridor.execute().await);
    assert_eq!(verdict.error.as_deref(), Some("interrupted: lock_lost"));
    assert_eq!(corridor.log.times("gone"), [24_695]);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_began_long_after_its_lock_is_interrupted_at_the_renewal_cap() {
    let corridor = Corridor::obeying("max_renewals = 0");
    corridor.ledger.claim.after(secs(2), Ok(Claim::Won(WON)));
    let (verdict, _) = ran(corridor.execute().await);
    assert_eq!(verdict.error.as_deref(), Some("interrupted: renewal_cap"));
    assert_eq!(corridor.log.times("gone"), [24_695]);
    assert_eq!(corridor.log.count("renew"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cap_that_ends_with_the_timeout_is_a_timeout() {
    let shown = Shown::from_now();
    let corridor = Corridor::obeying("max_renewals = 0");
    // The cap ends a second before the timeout, and a twentieth of the ttl is a second and a half.
    corridor.ledger.claim.after(secs(1), Ok(Claim::Won(WON)));
    assert_eq!(recorded(corridor.execute().await), (State::Failed, Some(Reason::Timeout)));
    assert_eq!(corridor.log.times("gone"), [24_695]);
    assert_eq!(shown.value("runner_lock_lost_total{job=\"job\",reason=\"cap\"}"), 1.0);
    assert_eq!(shown.value("runner_lock_renewal_cap_reached_total{job=\"job\"}"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn a_cap_a_twentieth_of_the_ttl_before_the_timeout_is_a_timeout() {
    let corridor = Corridor::obeying("max_renewals = 0");
    corridor.ledger.claim.after(Duration::from_millis(1_500), Ok(Claim::Won(WON)));
    assert_eq!(recorded(corridor.execute().await), (State::Failed, Some(Reason::Timeout)));
}

#[tokio::test(start_paused = true)]
async fn renewals_are_counted_while_the_run_goes_on() {
    let shown = Shown::from_now();
    let corridor = Corridor::taking(secs(45), "");
    corridor.lock.renew.then(Err(lockcore::LockError::unavailable("renew", "no answer")));
    let renewals = |outcome| shown.value(&format!("runner_lock_renewals_total{{outcome=\"{outcome}\"}}"));
    let counted = || assert!(renewals("renewed") >= 1.0 && renewals("failed") == 1.0);
    ran(corridor.with(corridor.execute(), 31.0, counted).await);
    let sent = corridor.log.count("renew");
    assert_eq!((renewals("renewed"), renewals("failed")), (sent as f64 - 1.0, 1.0));
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_was_lost_is_counted_at_its_release() {
    let shown = Shown::from_now();
    let corridor = Corridor::new("", |_, around| async move {
        around.host.freeze(secs(60));
        Ok(())
    });
    ran(corridor.execute().await);
    assert_eq!(shown.value("runner_lock_release_mismatch_total{job=\"job\"}"), 1.0);
    assert_eq!(shown.value("runner_lock_hold_seconds_count{job=\"job\"}"), 1.0);
}

#[tokio::test(start_paused = true)]
async fn the_first_end_of_a_firing_of_the_schedule_leaves_a_done_marker() {
    for (ttl, life) in [("30s", 30), ("2m", 60)] {
        let corridor = Corridor::succeeding(&format!("ttl = \"{ttl}\""));
        ran(corridor.execute().await);
        let mark = DoneMark::new(SUBJECT, secs(life));
        assert_eq!(corridor.lock.marks.one(), Some(mark));
    }
    let corridor = Corridor::succeeding("");
    corridor.ledger.claim.then(Ok(Claim::Paused));
    corridor.execute().await;
    assert!(corridor.lock.marks.one().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_firing_that_will_run_again_leaves_no_done_marker() {
    let corridor = Corridor::failing(|| JobError::retry("no route"), "max_attempts = 2");
    assert_eq!(recorded(corridor.execute().await), (State::Queued, Some(Reason::Retry)));
    assert_eq!(corridor.lock.marks.one(), None);
}

#[tokio::test(start_paused = true)]
async fn only_a_fresh_firing_of_the_schedule_leaves_a_done_marker() {
    let corridor = Corridor::succeeding("");
    ran(corridor.execute_queued().await);
    ran(corridor.execute_fresh(Origin::Manual).await);
    ran(corridor.execute_fresh(Origin::CatchUp).await);
    assert_eq!(corridor.lock.marks.all(), [None, None, None]);
}
