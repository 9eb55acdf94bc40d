//! A run that commits a transaction of its own, which ends its firing.

use tracing::Level;

use super::answers::{away, busy};
use super::fixture::{Corridor, Host, TTL, ran, recorded, secs};
use super::ledger::{RUN, WON};
use super::shown::Shown;
use crate::firing::{Reason, State};
use crate::job::JobError;
use crate::ledger::Heartbeat;

/// A run that sleeps, commits, notes whether it has been asked to stop, and then ends with `end`.
fn committing(after: u64, end: fn() -> Result<(), JobError>, settings: &str) -> Corridor {
    Corridor::new(settings, move |ctx, around| async move {
        tokio::time::sleep(secs(after)).await;
        ctx.transaction().await?.commit().await?;
        around.log.note(if ctx.is_cancelled() { "asked to stop" } else { "goes on" });
        end()
    })
}

#[tokio::test(start_paused = true)]
async fn a_transaction_is_opened_on_the_terms_of_its_run() {
    let corridor = committing(2, || Ok(()), "timeout = \"20s\"");
    ran(corridor.execute().await);
    let terms = corridor.ledger.terms.one();
    assert_eq!((terms.run, terms.attempt, terms.lease), (RUN, WON.attempt, TTL));
    assert_eq!(terms.deadline, Host::BEGAN + secs(20));
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_committed_has_succeeded_and_is_not_settled_again() {
    let corridor = committing(2, || Ok(()), "");
    assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
    assert_eq!(corridor.log.events(), ["acquire", "claim", "run", "commit", "goes on", "gone", "release"]);
}

#[tokio::test(start_paused = true)]
async fn an_error_after_the_commit_does_not_change_that_it_has_succeeded() {
    let shown = Shown::from_now();
    let corridor = committing(2, || Err(JobError::fail("afterwards")), "");
    assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
    assert_eq!(corridor.log.count("settle"), 0);
    assert_eq!(shown.lines(Level::WARN, "the run went wrong after it had committed"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_own_commit_has_ended_it_is_not_asked_to_stop() {
    let corridor = committing(9, || Ok(()), "");
    corridor.ledger.commit.after(secs(3), Ok(()));
    corridor.ledger.heartbeat.then(Ok(Heartbeat::Lost));
    assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
    assert_eq!((corridor.log.count("heartbeat"), corridor.log.count("goes on")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_licence_during_a_commit_is_no_alarm() {
    let shown = Shown::from_now();
    let corridor = committing(9, || Ok(()), "");
    corridor.ledger.commit.after(secs(19), Ok(()));
    corridor.ledger.heartbeat.then(Ok(Heartbeat::Lost));
    assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
    assert_eq!(corridor.log.count("asked to stop"), 1);
    assert_eq!(shown.lines(Level::WARN, "did not acknowledge"), 0);
}

/// A run that is dropped in the middle of its commit, at fifteen seconds.
fn dropped_in_commit() -> Corridor {
    let corridor = committing(2, || Ok(()), "timeout = \"10s\"");
    corridor.ledger.commit.after(secs(3_600), Ok(()));
    corridor
}

#[tokio::test(start_paused = true)]
async fn the_ledger_is_asked_whether_a_run_that_was_dropped_has_committed() {
    let corridor = dropped_in_commit();
    assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
    let events = ["acquire", "claim", "run", "commit", "gone", "committed?", "release"];
    let told: Vec<_> =
        corridor.log.events().into_iter().filter(|event| !["heartbeat", "renew"].contains(event)).collect();
    assert_eq!(told, events);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_has_not_committed_is_settled_by_what_it_did() {
    let corridor = dropped_in_commit();
    corridor.ledger.committed.then(Ok(false));
    assert_eq!(recorded(corridor.execute().await), (State::Failed, Some(Reason::Timeout)));
    assert_eq!(corridor.log.count("settle"), 1);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_settled_before_it_is_known_whether_the_run_has_committed() {
    let shown = Shown::from_now();
    let corridor = dropped_in_commit();
    corridor.ledger.committed.then(Err(away())).then(Err(busy())).then(Ok(true));
    assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
    assert_eq!((corridor.log.count("committed?"), corridor.log.count("settle")), (3, 0));
    assert!(!corridor.is_ledger_there());
    assert_eq!(shown.lines(Level::WARN, "commit without an answer"), 2);
}
