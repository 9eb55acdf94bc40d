//! Invariants of the changes of rows: ends are final, only allowed changes of state occur, and after the end of all
//! faults the missing rows are written in time.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use super::witness::Change;
use super::{History, Judgement};

const ENDED: [&str; 4] = ["succeeded", "failed", "cancelled", "skipped"];

/// A row that has ended never changes again, also not by a late owner.
pub(super) fn ends_are_final(history: &History, judgement: &mut Judgement) {
    for change in &history.witness.changes {
        if change.from.as_deref().is_some_and(|from| ENDED.contains(&from)) {
            judgement.breach("ends are final", format_args!("{change:?}"));
        }
    }
}

/// States change only as the diagram of the ledger shows, and only a claim changes the fence.
pub(super) fn states_follow_one_another(history: &History, judgement: &mut Judgement) {
    for change in &history.witness.changes {
        if !may_follow(change) {
            judgement.breach("states follow one another", format_args!("{change:?}"));
        }
    }
}

fn may_follow(change: &Change) -> bool {
    let Change { from, to, fence_before, fence, .. } = change;
    let same_fence = fence_before == fence;
    match (from.as_deref().unwrap_or(""), to.as_deref().unwrap_or("")) {
        ("", "queued" | "skipped") => fence.is_none(),
        ("", "running") => fence.is_some(),
        ("queued", "running") => fence > fence_before,
        ("queued", "queued" | "skipped" | "failed" | "cancelled") => same_fence,
        ("running", "running" | "queued" | "succeeded" | "failed" | "cancelled" | "lost") => same_fence,
        // The owner's own late result replaces `lost`.
        ("lost", "succeeded" | "failed" | "cancelled") => same_fence,
        // Changes after an end are checked by the invariant "ends are final".
        (from, _) => ENDED.contains(&from),
    }
}

/// Every firing that was due when all faults ended has its row in time.
pub(super) fn recovery_keeps_its_bound(history: &History, judgement: &mut Judgement) {
    let bound = TimeDelta::from_std(history.witness.recovery_bound).unwrap_or(TimeDelta::MAX);
    for (job, instant, healed, written) in late_rows(history) {
        let late = written.is_none_or(|written| written > healed + bound);
        if late {
            judgement.breach(
                "recovery keeps its bound",
                format_args!("{job} {instant}, healed at {healed}, has its row since {written:?}"),
            );
        }
    }
}

/// The longest time from the end of all faults until every firing that was due by then had its row.
pub(super) fn slowest_recovery(history: &History) -> Option<TimeDelta> {
    let of_each =
        late_rows(history).into_iter().filter_map(|(_, _, healed, written)| Some(written? - healed));
    (!history.witness.heals.is_empty()).then(|| of_each.max().unwrap_or_default())
}

type LateRow<'h> = (&'h str, DateTime<Utc>, DateTime<Utc>, Option<DateTime<Utc>>);

/// Firings that were due at a heal and had no row yet, with the moment when the row was written.
fn late_rows(history: &History) -> Vec<LateRow<'_>> {
    let written_at: BTreeMap<i64, DateTime<Utc>> = history
        .witness
        .changes
        .iter()
        .filter(|change| change.from.is_none())
        .map(|change| (change.row, change.at))
        .collect();
    let rows: BTreeMap<_, _> =
        history.rows.iter().map(|row| ((&*row.job, row.scheduled_at), written_at.get(&row.id))).collect();
    let mut late = Vec::new();
    for healed in &history.witness.heals {
        for timetable in &history.timetables {
            for instant in timetable.instants().take_while(|instant| instant <= healed) {
                let written = rows.get(&(&*timetable.job, instant)).copied().flatten().copied();
                if written.is_none_or(|written| written > *healed) {
                    late.push((&*timetable.job, instant, *healed, written));
                }
            }
        }
    }
    late
}

#[cfg(test)]
mod planted;
