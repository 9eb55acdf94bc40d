//! Changes of rows that must not happen. The check must find each of them.

use std::time::Duration;

use super::super::invariants::planted::{at, breaks, good};
use super::*;

fn change(row: i64, millis: i64, from: &str, to: &str, fences: (i64, i64)) -> Change {
    let state = |state: &str| (!state.is_empty()).then(|| state.to_owned());
    let fence = |fence: i64| (fence > 0).then_some(fence);
    let (fence_before, fence) = (fence(fences.0), fence(fences.1));
    let at = at(0) + TimeDelta::milliseconds(millis);
    Change { row, at, from: state(from), to: state(to), fence_before, fence }
}

/// Firing 1 runs; firing 2 is swept and taken over; firing 3 is skipped late, after a heal.
fn watched() -> History {
    let mut history = good();
    history.witness.changes = vec![
        change(1, 1_000, "", "running", (0, 10)),
        change(1, 1_050, "running", "running", (10, 10)),
        change(1, 1_100, "running", "succeeded", (10, 10)),
        change(2, 2_000, "", "running", (0, 11)),
        change(2, 2_400, "running", "queued", (11, 11)),
        change(2, 2_500, "queued", "running", (11, 12)),
        change(2, 2_900, "running", "succeeded", (12, 12)),
        change(3, 3_700, "", "skipped", (0, 0)),
    ];
    history.witness.heals = vec![at(3) + TimeDelta::milliseconds(200)];
    history.witness.recovery_bound = Duration::from_millis(500);
    history
}

#[track_caller]
fn trail_breaks(invariant: &str, spoil: impl FnOnce(&mut Vec<Change>)) {
    breaks(invariant, |history| {
        *history = watched();
        spoil(&mut history.witness.changes);
    });
}

#[test]
fn a_good_trail_has_no_breach_and_shows_the_slowest_recovery() {
    let judgement = watched().judge();
    judgement.assert_clean();
    assert_eq!(judgement.counts.slowest_recovery, Some(Duration::from_millis(500)));
    assert_eq!(good().judge().counts.slowest_recovery, None);
}

#[test]
fn an_end_that_changes_is_seen() {
    for (from, to) in [("succeeded", "failed"), ("skipped", "queued"), ("failed", ""), ("cancelled", "lost")]
    {
        trail_breaks("ends are final", |changes| changes.push(change(1, 9_000, from, to, (10, 10))));
    }
    trail_breaks("ends are final", |changes| {
        changes.push(change(1, 9_000, "succeeded", "succeeded", (10, 10)));
    });
}

#[test]
fn the_one_late_result_of_a_lost_run_is_no_breach() {
    let mut history = watched();
    history.witness.changes[6] = change(2, 2_900, "running", "lost", (12, 12));
    history.witness.changes.push(change(2, 3_500, "lost", "succeeded", (12, 12)));
    history.judge().assert_clean();
}

#[test]
fn a_change_of_state_that_is_not_in_the_diagram_is_seen() {
    for (from, to, fences) in [
        ("", "succeeded", (0, 10)),
        ("", "running", (0, 0)),
        ("queued", "succeeded", (0, 0)),
        ("queued", "running", (11, 11)),
        ("queued", "running", (11, 10)),
        ("running", "running", (10, 11)),
        ("running", "skipped", (10, 10)),
        ("running", "succeeded", (10, 11)),
        ("running", "", (10, 0)),
        ("lost", "queued", (10, 10)),
        ("lost", "succeeded", (10, 11)),
    ] {
        trail_breaks("states follow one another", |changes| changes.push(change(9, 9_000, from, to, fences)));
    }
}

#[test]
fn a_row_that_comes_too_late_after_a_heal_or_never_is_seen() {
    trail_breaks("recovery keeps its bound", |changes| changes[7].at += TimeDelta::milliseconds(1));
    trail_breaks("recovery keeps its bound", |changes| drop(changes.pop()));
    breaks("recovery keeps its bound", |history| {
        *history = watched();
        history.rows.pop();
    });
}
