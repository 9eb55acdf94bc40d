//! Step six: what is recorded of a run, and for how long that is tried.

use std::time::Duration;

use tracing::Level;

use super::answers::{away, busy};
use super::fixture::{Corridor, ran, recorded, secs};
use super::ledger::{RUN, WON};
use super::shown::Shown;
use crate::engine::executor::Fate;
use crate::firing::{Reason, State};
use crate::job::JobError;
use crate::ledger::{Claim, Ending, Settled, Won};

#[tokio::test(start_paused = true)]
async fn a_settlement_says_which_run_has_ended_how_and_what_it_left() {
    let corridor = Corridor::new("", |ctx, _| async move {
        ctx.set_output("half of it");
        Err(JobError::fail("no such account"))
    });
    let fate = corridor.execute().await;
    assert!(matches!(&fate, Fate::Ran { output: Some(output), .. } if output == "half of it"));
    assert_eq!(recorded(fate), (State::Failed, Some(Reason::Error)));
    let settlement = corridor.ledger.settlements.one();
    assert_eq!((settlement.run, settlement.crashed), (RUN, false));
    assert_eq!(settlement.ending, Ending::Terminal { state: State::Failed, reason: Some(Reason::Error) });
    assert_eq!(settlement.error.as_deref(), Some("no such account"));
    assert_eq!(settlement.output.as_deref(), Some("half of it"));
}

#[tokio::test(start_paused = true)]
async fn a_long_error_is_recorded_by_its_end() {
    let corridor = Corridor::failing(|| JobError::fail(format!("{}the end", "x".repeat(100_000))), "");
    ran(corridor.execute().await);
    let error = corridor.ledger.settlements.one().error.unwrap();
    assert!(error.ends_with("the end") && (16_000..=17_000).contains(&error.len()), "{}", error.len());
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_judged_by_the_terms_of_its_job() {
    let settings = "max_attempts = 3\nbackoff = { initial = \"7s\" }";
    let corridor = Corridor::failing(|| JobError::retry("no route"), settings);
    ran(corridor.execute().await);
    let ending = corridor.ledger.settlements.one().ending;
    assert!(
        matches!(ending, Ending::Requeue { reason: Reason::Retry, due_in, .. } if due_in == secs(7)),
        "{ending:?}"
    );
    let corridor = Corridor::failing(|| JobError::retry("no route"), settings);
    corridor.ledger.claim.then(Ok(Claim::Won(Won { attempt: 3, failures: 2, ..WON })));
    assert_eq!(recorded(corridor.execute().await), (State::Failed, Some(Reason::Error)));
}

#[tokio::test(start_paused = true)]
async fn an_interrupted_run_is_judged_by_the_terms_of_its_job() {
    let interrupted = async |settings| {
        let corridor = Corridor::obeying(settings);
        corridor.ledger.heartbeat.always(|| Err(busy()));
        recorded(corridor.execute().await)
    };
    assert_eq!(interrupted("max_crashes = 0").await, (State::Failed, Some(Reason::CrashLoop)));
    assert_eq!(interrupted("delivery = \"at_most_once\"").await, (State::Lost, Some(Reason::LeaseLost)));
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_recorded_with_its_message() {
    let panicked = async |panics: fn()| {
        let corridor = Corridor::new("", move |_, _| async move {
            panics();
            Ok(())
        });
        assert_eq!(recorded(corridor.execute().await), (State::Failed, Some(Reason::Panicked)));
        corridor.ledger.settlements.one().error.unwrap()
    };
    assert_eq!(panicked(|| panic!("plain")).await, "panicked: plain");
    assert_eq!(panicked(|| panic!("number {}", 7)).await, "panicked: number 7");
    assert_eq!(panicked(|| std::panic::panic_any(7)).await, "panicked: a panic without a message");
}

#[tokio::test(start_paused = true)]
async fn the_lock_is_released_after_the_run_is_settled_and_then_the_next_has_its_turn() {
    let corridor = Corridor::taking(secs(5), "");
    corridor.ledger.settle.after(secs(2), Ok(Settled::Recorded));
    ran(corridor.execute().await);
    assert_eq!((corridor.log.times("settle"), corridor.log.times("release")), (vec![5_000], vec![7_000]));
    assert!(corridor.has_given_turn().await);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_came_after_a_takeover_is_void_and_counted() {
    let shown = Shown::from_now();
    let corridor = Corridor::succeeding("");
    corridor.ledger.settle.then(Ok(Settled::Fenced));
    let (_, settled) = ran(corridor.execute().await);
    assert_eq!(settled, Some(Settled::Fenced));
    assert_eq!(shown.value("runner_ledger_fenced_total{job=\"job\"}"), 1.0);
    assert_eq!(shown.value("runner_firings_total{job=\"job\",state=\"succeeded\",reason=\"\"}"), 0.0);
    assert_eq!(shown.lines(Level::WARN, "its result is void"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_recorded_result_is_counted_by_state_and_reason() {
    let shown = Shown::from_now();
    ran(Corridor::succeeding("").execute().await);
    ran(Corridor::failing(|| JobError::fail("no"), "").execute().await);
    let firings = |labels| shown.value(&format!("runner_firings_total{{job=\"job\",{labels}}}"));
    assert_eq!(firings("state=\"succeeded\",reason=\"\""), 1.0);
    assert_eq!(firings("state=\"failed\",reason=\"error\""), 1.0);
    assert!(shown.value("runner_job_last_success_timestamp_seconds{job=\"job\"}") >= 1_800_000_000.0);
    assert_eq!(shown.value("runner_run_duration_seconds_count{job=\"job\"}"), 2.0);
}

#[tokio::test(start_paused = true)]
async fn a_result_without_an_answer_frees_the_lock_and_is_sent_until_there_is_one() {
    let shown = Shown::from_now();
    let corridor = Corridor::succeeding("");
    corridor.ledger.settle.then(Err(busy())).then(Err(busy()));
    assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
    let events = ["acquire", "claim", "run", "gone", "settle", "release", "settle", "settle"];
    assert_eq!(corridor.log.events(), events);
    // Nobody may be told that it is done before it is recorded.
    assert_eq!(corridor.lock.marks.one(), None);
    assert!(corridor.has_given_turn().await);
    assert!(corridor.is_ledger_there());
    assert_eq!(shown.lines(Level::WARN, "settle without an answer"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_finds_no_ledger_stops_the_contending() {
    let corridor = Corridor::succeeding("");
    corridor.ledger.settle.then(Err(away()));
    ran(corridor.execute().await);
    assert!(!corridor.is_ledger_there());
}

#[tokio::test(start_paused = true)]
async fn a_result_is_sent_again_before_a_sweep_takes_the_owner_for_vanished() {
    for (ttl, longest) in [("6s", 500), ("30s", 1_000)] {
        let corridor = Corridor::succeeding(&format!("ttl = \"{ttl}\""));
        for _ in 0..60 {
            corridor.ledger.settle.then(Err(busy()));
        }
        ran(corridor.execute().await);
        let sent = corridor.log.times("settle");
        let pauses: Vec<_> = sent.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(pauses.len(), 60);
        // A pause is a random part of the longest, and a timer may take a millisecond more.
        assert!(pauses.iter().all(|pause| (2..=longest + 1).contains(pause)), "{pauses:?}");
        assert!(pauses.iter().any(|pause| *pause > longest * 9 / 10), "{pauses:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_leaves_does_not_wait_for_the_ledger() {
    let shown = Shown::from_now();
    let corridor = Corridor::succeeding("");
    corridor.ledger.settle.after(secs(3_600), Ok(Settled::Recorded));
    let (verdict, settled) = ran(corridor.with(corridor.execute(), 5.0, || corridor.drain().abandon()).await);
    assert_eq!((verdict.ending.words(), settled), ((State::Succeeded, None), None));
    assert_eq!(corridor.log.times("release"), [5_000]);
    assert_eq!(corridor.lock.marks.one(), None);
    assert_eq!(shown.lines(Level::WARN, "left without recording the result"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_leaves_stops_sending_a_result_that_nobody_answers() {
    let corridor = Corridor::succeeding("");
    corridor.ledger.settle.always(|| Err(busy()));
    let (_, settled) = ran(corridor.with(corridor.execute(), 20.0, || corridor.drain().abandon()).await);
    assert_eq!(settled, None);
    assert_eq!(corridor.log.elapsed(), secs(20));
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_leaves_still_records_what_the_ledger_takes_at_once() {
    let corridor = Corridor::new("", |_, around| async move {
        around.drain.abandon();
        Ok(())
    });
    assert_eq!(recorded(corridor.execute().await), (State::Succeeded, None));
}

#[tokio::test(start_paused = true)]
async fn a_run_shows_how_long_it_took() {
    let shown = Shown::from_now();
    ran(Corridor::taking(Duration::from_millis(2_500), "").execute().await);
    assert_eq!(shown.value("runner_run_duration_seconds_sum{job=\"job\"}"), 2.5);
}
