//! What the changes of the rows tell: ends are final, states follow one another as they may, and a
//! heal is followed by rows.

use std::collections::BTreeMap;

use chrono::{DateTime, TimeDelta, Utc};

use super::witness::Change;
use super::{History, Judgement};

const ENDED: [&str; 4] = ["succeeded", "failed", "cancelled", "skipped"];

/// A row that has ended never changes again, whoever comes late.
pub(super) fn ends_are_final(history: &History, judgement: &mut Judgement) {
    for change in &history.witness.changes {
        if change.from.as_deref().is_some_and(|from| ENDED.contains(&from)) {
            judgement.breach("ends are final", format_args!("{change:?}"));
        }
    }
}

/// From state to state as the ledger's picture shows it; a new fence only with a claim.
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
        // The one late result of a run that was given up.
        ("lost", "succeeded" | "failed" | "cancelled") => same_fence,
        // What had ended before is the other invariant's.
        (from, _) => ENDED.contains(&from),
    }
}

/// What was due when everything was whole again has its row in time.
pub(super) fn recovery_keeps_its_bound(history: &History, judgement: &mut Judgement) {
    let bound = TimeDelta::from_std(history.witness.recovery_bound).unwrap_or(TimeDelta::MAX);
    for (job, instant, healed, born) in late_births(history) {
        let late = born.is_none_or(|born| born > healed + bound);
        if late {
            judgement.breach(
                "recovery keeps its bound",
                format_args!("{job} {instant}, healed at {healed}, has its row since {born:?}"),
            );
        }
    }
}

/// From a heal to the last row of what was due by then, in the slowest case.
pub(super) fn slowest_recovery(history: &History) -> Option<TimeDelta> {
    let of_each = late_births(history).into_iter().filter_map(|(_, _, healed, born)| Some(born? - healed));
    (!history.witness.heals.is_empty()).then(|| of_each.max().unwrap_or_default())
}

type Birth<'h> = (&'h str, DateTime<Utc>, DateTime<Utc>, Option<DateTime<Utc>>);

/// Firings that were due at a heal and had no row yet, with the moment they got it.
fn late_births(history: &History) -> Vec<Birth<'_>> {
    let births: BTreeMap<i64, DateTime<Utc>> = history
        .witness
        .changes
        .iter()
        .filter(|change| change.from.is_none())
        .map(|change| (change.row, change.at))
        .collect();
    let rows: BTreeMap<_, _> =
        history.rows.iter().map(|row| ((&*row.job, row.scheduled_at), births.get(&row.id))).collect();
    let mut late = Vec::new();
    for healed in &history.witness.heals {
        for timetable in &history.timetables {
            for instant in timetable.instants().take_while(|instant| instant <= healed) {
                let born = rows.get(&(&*timetable.job, instant)).copied().flatten().copied();
                if born.is_none_or(|born| born > *healed) {
                    late.push((&*timetable.job, instant, *healed, born));
                }
            }
        }
    }
    late
}

#[cfg(test)]
mod planted;
