//! Step one: when a replica contends for a firing, and when it does not.

use std::time::Duration;

use super::answers::away;
use super::fixture::{Corridor, Host, ran, secs};
use crate::engine::executor::Fate;
use crate::firing::{Origin, Reason};
use crate::schedule::delay;

#[tokio::test(start_paused = true)]
async fn a_replica_that_closes_begins_no_firing() {
    let corridor = Corridor::succeeding("");
    corridor.drain().close();
    assert!(matches!(corridor.execute().await, Fate::Drained));
    assert!(corridor.log.events().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_closes_ends_the_wait_for_a_place() {
    let corridor = Corridor::succeeding("");
    let _taken = corridor.executor.permits.clone().acquire_owned().await.unwrap();
    let fate = corridor.with(corridor.execute(), 3.0, || corridor.drain().close()).await;
    assert!(matches!(fate, Fate::Drained));
    assert_eq!(corridor.log.elapsed(), secs(3));
}

#[tokio::test(start_paused = true)]
async fn no_firing_contends_while_the_ledger_is_away() {
    let corridor = Corridor::succeeding("");
    corridor.executor.site.pulse.lost(&away());
    ran(corridor.with(corridor.execute(), 5.0, || corridor.ledger_answers()).await);
    assert_eq!(corridor.log.times("acquire"), [5_000]);
}

#[tokio::test(start_paused = true)]
async fn a_firing_too_late_for_a_ledger_that_is_away_is_let_go_without_a_row() {
    let corridor = Corridor::succeeding("start_deadline = \"10s\"");
    corridor.executor.site.pulse.lost(&away());
    assert!(matches!(corridor.execute().await, Fate::LetGo));
    assert!(corridor.log.events().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_firing_without_a_place_until_its_deadline_is_recorded_as_missed() {
    let corridor = Corridor::succeeding("start_deadline = \"10s\"");
    let _taken = corridor.executor.permits.clone().acquire_owned().await.unwrap();
    assert!(matches!(corridor.execute().await, Fate::Skipped(Reason::Missed)));
    // A little after the deadline, since another replica may claim it until then.
    assert_eq!(corridor.log.times("skip"), [10_010]);
    let skip = corridor.ledger.skips.one();
    assert_eq!((skip.reason, skip.only_while_running), (Reason::Missed, false));
    assert_eq!(skip.firing, corridor.firing(Origin::Schedule));
}

#[tokio::test(start_paused = true)]
async fn a_place_at_the_deadline_itself_is_in_time() {
    let corridor = Corridor::succeeding("start_deadline = \"10s\"");
    let taken = corridor.executor.permits.clone().acquire_owned().await.unwrap();
    ran(corridor.with(corridor.execute(), 10.0, || drop(taken)).await);
    assert_eq!(corridor.log.times("claim"), [10_000]);
}

#[tokio::test(start_paused = true)]
async fn the_start_deadline_counts_from_the_end_of_the_jitter() {
    let corridor = Corridor::succeeding("start_deadline = \"10s\"\njitter = \"1m\"");
    let _taken = corridor.executor.permits.clone().acquire_owned().await.unwrap();
    let jitter = delay(&corridor.job.spec.name, Host::WALL, secs(60));
    assert!(jitter > secs(1), "a jitter that tells: {jitter:?}");
    assert!(matches!(corridor.execute().await, Fate::Skipped(Reason::Missed)));
    let late = corridor.log.elapsed() - jitter - secs(10);
    assert!(late >= Duration::from_millis(10) && late < Duration::from_millis(12), "{late:?}");
}

#[tokio::test(start_paused = true)]
async fn a_queued_firing_has_no_start_deadline_here() {
    let corridor = Corridor::succeeding("start_deadline = \"10s\"");
    let taken = corridor.executor.permits.clone().acquire_owned().await.unwrap();
    ran(corridor.with(corridor.execute_queued(), 3_600.0, || drop(taken)).await);
    assert_eq!(corridor.log.times("claim"), [3_600_000]);
}

#[tokio::test(start_paused = true)]
async fn a_place_is_given_back_if_the_ledger_went_away_before_it_came() {
    let corridor = Corridor::succeeding("");
    let taken = corridor.executor.permits.clone().acquire_owned().await.unwrap();
    let walk = corridor.with(corridor.execute(), 1.0, || {
        corridor.executor.site.pulse.lost(&away());
        drop(taken);
    });
    let walk = corridor.with(walk, 3.0, || assert_eq!(corridor.executor.permits.available_permits(), 1));
    ran(corridor.with(walk, 5.0, || corridor.ledger_answers()).await);
    assert_eq!(corridor.log.times("acquire"), [5_000]);
}

#[tokio::test(start_paused = true)]
async fn a_run_keeps_its_place_until_it_is_settled() {
    let corridor = Corridor::taking(secs(10), "");
    let room = || corridor.executor.permits.available_permits();
    ran(corridor.with(corridor.execute(), 9.0, || assert_eq!(room(), 0)).await);
    assert_eq!(room(), 1);
}
