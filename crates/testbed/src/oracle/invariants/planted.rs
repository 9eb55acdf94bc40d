//! A good history, and for each invariant a bad one. The check must find each bad one.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::super::{Attempt, History, Row, Timetable, Witness};
use crate::{Effect, EffectKind};

pub(in super::super) fn at(second: i64) -> DateTime<Utc> {
    DateTime::from_timestamp(second, 0).unwrap()
}

fn effect(kind: EffectKind, second: i64, attempt: u32, fence: i64, millis: i64) -> Effect {
    Effect {
        kind,
        job: "job".into(),
        scheduled_at: at(second),
        shard: 0,
        attempt,
        fence,
        at: at(0) + TimeDelta::milliseconds(millis),
        key: format!("ns/job/{second}/0"),
    }
}

fn row(id: i64, second: i64, attempt: u32, fence: i64) -> Row {
    Row {
        id,
        job: "job".into(),
        scheduled_at: at(second),
        state: "succeeded".into(),
        reason: String::new(),
        attempt,
        crashes: attempt - 1,
        fence: Some(fence),
        exclusive: true,
        delivery: "at_least_once".into(),
        started_at: Some(at(second) + TimeDelta::milliseconds(500 * i64::from(attempt - 1))),
        finished_at: Some(at(second + 1)),
    }
}

/// Firing 1 runs; firing 2 loses its owner and runs again; firing 3 is skipped.
pub(in super::super) fn good() -> History {
    use EffectKind::{End, Start, Tick};
    let skipped = Row {
        state: "skipped".into(),
        reason: "overlap".into(),
        attempt: 0,
        crashes: 0,
        fence: None,
        started_at: None,
        ..row(3, 3, 1, 0)
    };
    History {
        rows: vec![row(1, 1, 1, 10), row(2, 2, 2, 12), skipped],
        attempts: vec![Attempt {
            firing_id: 2,
            attempt: 1,
            fence: 11,
            started_at: Some(at(2)),
            ended_at: at(2) + TimeDelta::milliseconds(400),
            owner: "a-1".into(),
            reason: "owner_lost".into(),
        }],
        effects: vec![
            effect(Start, 1, 1, 10, 1_000),
            effect(End, 1, 1, 10, 1_100),
            effect(Start, 2, 1, 11, 2_000),
            effect(Tick, 2, 1, 11, 2_200),
            effect(Start, 2, 2, 12, 2_500),
            effect(End, 2, 2, 12, 2_900),
        ],
        timetables: vec![Timetable {
            job: "job".into(),
            from: at(0),
            until: at(3),
            every: Duration::from_secs(1),
        }],
        witness: Witness::default(),
    }
}

#[track_caller]
pub(in super::super) fn breaks(invariant: &str, spoil: impl FnOnce(&mut History)) {
    let mut history = good();
    spoil(&mut history);
    let judgement = history.judge();
    let seen: Vec<_> = judgement.breaches.iter().map(|breach| breach.invariant).collect();
    assert!(seen.contains(&invariant), "the check did not report {invariant:?}, only {seen:?}");
}

#[test]
fn a_good_history_has_no_breach_and_is_counted() {
    let judgement = good().judge();
    judgement.assert_clean();
    let counts = judgement.counts;
    assert_eq!((counts.due, counts.rows, counts.starts, counts.repeats), (3, 3, 3, 1));
    assert_eq!((counts.doubled, counts.missing), (0, 0));
}

#[test]
fn a_second_row_is_seen() {
    breaks("one row per firing", |history| history.rows.push(row(4, 1, 1, 13)));
}

#[test]
fn a_missing_row_is_seen() {
    breaks("no firing is missing", |history| drop(history.rows.pop()));
}

#[test]
fn a_row_that_no_timetable_asks_for_is_seen() {
    breaks("no firing is invented", |history| {
        history.rows[0].scheduled_at += TimeDelta::milliseconds(500);
    });
    breaks("no firing is invented", |history| history.timetables[0].from = at(2));
}

#[test]
fn a_start_before_its_instant_is_seen_and_a_little_skew_is_let_through() {
    breaks("no start is early", |history| history.effects[0].at = at(1) - TimeDelta::milliseconds(101));
    let mut close = good();
    close.effects[0].at = at(1) - TimeDelta::milliseconds(100);
    close.judge().assert_clean();
}

#[test]
fn a_start_that_no_attempt_licenses_is_seen() {
    let stranger = effect(EffectKind::Start, 1, 1, 99, 5_000);
    breaks("no start without a license", |history| history.effects.push(stranger));
    let wrong_attempt = effect(EffectKind::Start, 1, 2, 10, 5_000);
    breaks("no start without a license", |history| history.effects.push(wrong_attempt));
    let wrong_firing = effect(EffectKind::Start, 2, 1, 10, 5_000);
    breaks("no start without a license", |history| history.effects.push(wrong_firing));
}

#[test]
fn a_second_start_of_one_attempt_is_seen() {
    let again = effect(EffectKind::Start, 1, 1, 10, 5_000);
    breaks("each license starts once", |history| history.effects.push(again));
}

#[test]
fn a_second_start_under_at_most_once_is_seen() {
    breaks("at_most_once starts once", |history| history.rows[1].delivery = "at_most_once".into());
}

#[test]
fn an_overlap_is_seen_and_runs_that_touch_are_none() {
    breaks("exclusive runs are disjoint", |history| {
        history.effects[3] = effect(EffectKind::Tick, 2, 1, 11, 2_501)
    });
    let mut touching = good();
    touching.effects[3] = effect(EffectKind::Tick, 2, 1, 11, 2_500);
    touching.judge().assert_clean();
}

#[test]
fn a_fence_that_falls_or_is_given_twice_is_seen() {
    breaks("fences grow", |history| {
        history.rows[0].fence = Some(20);
        history.effects[0].fence = 20;
        history.effects[1].fence = 20;
    });
    breaks("fences grow", |history| history.rows[0].fence = Some(12));
}

#[test]
fn a_hole_in_the_attempts_is_seen() {
    breaks("attempts are gapless", |history| history.attempts.clear());
    breaks("attempts are gapless", |history| history.attempts[0].firing_id = 77);
    breaks("attempts are gapless", |history| history.attempts[0].fence = 13);
}

#[test]
fn a_state_that_its_past_does_not_allow_is_seen() {
    breaks("states are legal", |history| history.rows[0].state = "running".into());
    breaks("states are legal", |history| history.rows[0].state = "lost".into());
    breaks("states are legal", |history| history.rows[2].reason.clear());
    breaks("states are legal", |history| history.rows[0].finished_at = None);
    breaks("states are legal", |history| drop(history.effects.remove(1)));
}
