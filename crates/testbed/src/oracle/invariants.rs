//! What must hold of every history, one function each.

use std::collections::{BTreeMap, BTreeSet};

use chrono::TimeDelta;

use super::{History, Judgement, alarms, locks, trail};
use crate::EffectKind;

/// How far a replica's clock may be ahead of the ledger's before the ledger refuses its claim as too early.
const SKEW: TimeDelta = TimeDelta::milliseconds(100);

type Invariant = fn(&History, &mut Judgement);

pub(super) const ALL: [Invariant; 20] = [
    one_row_per_firing,
    no_firing_is_missing,
    no_firing_is_invented,
    no_start_is_early,
    no_start_without_a_license,
    each_license_starts_once,
    at_most_once_starts_once,
    exclusive_runs_are_disjoint,
    fences_grow,
    attempts_are_gapless,
    states_are_legal,
    trail::ends_are_final,
    trail::states_follow_one_another,
    trail::recovery_keeps_its_bound,
    locks::no_foreign_delete,
    locks::no_foreign_renewal,
    locks::renewals_stay_below_the_cap,
    locks::no_lock_outlives_its_longest_life,
    alarms::lost_runs_are_told,
    alarms::missed_releases_are_told,
];

fn one_row_per_firing(history: &History, judgement: &mut Judgement) {
    let mut seen = BTreeSet::new();
    for row in &history.rows {
        if !seen.insert((&row.job, row.scheduled_at)) {
            judgement.breach("one row per firing", format_args!("{} {} has two", row.job, row.scheduled_at));
        }
    }
}

fn no_firing_is_missing(history: &History, judgement: &mut Judgement) {
    let there: BTreeSet<_> = history.rows.iter().map(|row| (&row.job, row.scheduled_at)).collect();
    for timetable in &history.timetables {
        for instant in timetable.instants().filter(|instant| !there.contains(&(&timetable.job, *instant))) {
            judgement.counts.missing += 1;
            judgement.breach("no firing is missing", format_args!("{} {instant} has no row", timetable.job));
        }
    }
}

fn no_firing_is_invented(history: &History, judgement: &mut Judgement) {
    for timetable in &history.timetables {
        let rows = history.rows.iter().filter(|row| row.job == timetable.job);
        for row in rows.filter(|row| !timetable.asks_for(row.scheduled_at)) {
            judgement.breach("no firing is invented", format_args!("{} {}", row.job, row.scheduled_at));
        }
    }
}

fn no_start_is_early(history: &History, judgement: &mut Judgement) {
    for start in history.starts().filter(|start| start.at + SKEW < start.scheduled_at) {
        judgement.breach("no start is early", format_args!("{start:?}"));
    }
}

fn no_start_without_a_license(history: &History, judgement: &mut Judgement) {
    let licenses = history.licenses();
    for start in history.starts() {
        let licensed = licenses.get(&start.fence).into_iter().flatten().any(|license| {
            license.row.job == start.job
                && license.row.scheduled_at == start.scheduled_at
                && license.attempt == start.attempt
        });
        if !licensed {
            judgement.counts.doubled += 1;
            judgement.breach("no start without a license", format_args!("{start:?}"));
        }
    }
}

fn each_license_starts_once(history: &History, judgement: &mut Judgement) {
    let mut started: BTreeMap<i64, usize> = BTreeMap::new();
    for start in history.starts() {
        *started.entry(start.fence).or_default() += 1;
    }
    for (fence, count) in started.into_iter().filter(|(_, count)| *count > 1) {
        judgement.counts.doubled += count - 1;
        judgement.breach("each license starts once", format_args!("fence {fence} started {count} times"));
    }
}

fn at_most_once_starts_once(history: &History, judgement: &mut Judgement) {
    let mut started: BTreeMap<_, usize> = BTreeMap::new();
    for start in history.starts() {
        *started.entry((&start.job, start.scheduled_at)).or_default() += 1;
    }
    for row in history.rows.iter().filter(|row| row.delivery == "at_most_once") {
        let count = started.get(&(&row.job, row.scheduled_at)).copied().unwrap_or(0);
        if count > 1 {
            judgement.counts.doubled += count - 1;
            judgement.breach(
                "at_most_once starts once",
                format_args!("{} {} started {count} times", row.job, row.scheduled_at),
            );
        }
    }
}

/// A run lasts from its first line to its last, also if it was killed.
fn exclusive_runs_are_disjoint(history: &History, judgement: &mut Judgement) {
    let exclusive: BTreeSet<&String> =
        history.rows.iter().filter(|row| row.exclusive && row.attempt > 0).map(|row| &row.job).collect();
    for job in exclusive {
        let mut runs: BTreeMap<i64, (i64, i64)> = BTreeMap::new();
        for effect in history.effects.iter().filter(|effect| effect.job == *job) {
            let at = effect.at.timestamp_micros();
            let run = runs.entry(effect.fence).or_insert((at, at));
            *run = (run.0.min(at), run.1.max(at));
        }
        let mut in_time: Vec<_> =
            runs.into_iter().map(|(fence, (from, until))| (from, until, fence)).collect();
        in_time.sort_unstable();
        for pair in in_time.windows(2) {
            let [(_, until, fence), (from, _, next)] = [pair[0], pair[1]];
            if from < until {
                let by = until - from;
                judgement.breach(
                    "exclusive runs are disjoint",
                    format_args!(
                        "{job}: the run of fence {next} began {by} us before that of fence {fence} ended"
                    ),
                );
            }
        }
    }
}

/// Of two claims of a job, the later one has the higher fence, and no two claims have the same.
fn fences_grow(history: &History, judgement: &mut Judgement) {
    let mut by_job: BTreeMap<&String, Vec<_>> = BTreeMap::new();
    for (fence, licenses) in history.licenses() {
        if let [first, second, ..] = licenses.as_slice() {
            judgement
                .breach("fences grow", format_args!("fence {fence} was given to {first:?} and {second:?}"));
        }
        for license in licenses {
            if let Some(started_at) = license.started_at {
                by_job.entry(&license.row.job).or_default().push((started_at, fence));
            }
        }
    }
    for (job, mut claims) in by_job {
        claims.sort_unstable();
        for pair in claims.windows(2) {
            if pair[0].0 < pair[1].0 && pair[0].1 >= pair[1].1 {
                judgement
                    .breach("fences grow", format_args!("{job}: {:?} came before {:?}", pair[0], pair[1]));
            }
        }
    }
}

/// All attempts of a firing except the newest are recorded as superseded, numbered from 1, with growing fences.
fn attempts_are_gapless(history: &History, judgement: &mut Judgement) {
    let mut filed: BTreeMap<i64, BTreeMap<u32, i64>> = BTreeMap::new();
    for attempt in &history.attempts {
        filed.entry(attempt.firing_id).or_default().insert(attempt.attempt, attempt.fence);
    }
    for row in &history.rows {
        let mut fences = filed.remove(&row.id).unwrap_or_default();
        if let Some(fence) = row.fence {
            fences.insert(row.attempt, fence);
        }
        let numbers: Vec<u32> = fences.keys().copied().collect();
        if !numbers.iter().copied().eq(1..=row.attempt) {
            judgement.breach(
                "attempts are gapless",
                format_args!("{} {}: {numbers:?} of {}", row.job, row.scheduled_at, row.attempt),
            );
        }
        if !fences.values().is_sorted_by(|a, b| a < b) {
            judgement.breach(
                "attempts are gapless",
                format_args!("{} {}: fences {fences:?}", row.job, row.scheduled_at),
            );
        }
    }
    for orphan in filed.into_keys() {
        judgement
            .breach("attempts are gapless", format_args!("attempts of row {orphan}, which does not exist"));
    }
}

/// After the end of all faults every firing has ended, in a state that its history allows.
fn states_are_legal(history: &History, judgement: &mut Judgement) {
    let ended: BTreeSet<(i64, EffectKind)> =
        history.effects.iter().map(|effect| (effect.fence, effect.kind)).collect();
    for row in &history.rows {
        let place = format!("{} {} is {}({})", row.job, row.scheduled_at, row.state, row.reason);
        let legal = match row.state.as_str() {
            "succeeded" | "failed" => row.fence.is_some() || row.reason == "expired",
            // Cancelled in the queue, or by its owner.
            "cancelled" => row.fence.is_some() == (row.attempt > 0),
            "lost" => row.delivery == "at_most_once",
            "skipped" => row.attempt == 0 && !row.reason.is_empty(),
            _ => false,
        };
        if !legal || row.finished_at.is_none() || row.crashes > row.attempt {
            judgement.breach("states are legal", &place);
        }
        let fence = row.fence.unwrap_or_default();
        if row.state == "succeeded" && !ended.contains(&(fence, EffectKind::End)) {
            judgement.breach("states are legal", format_args!("{place}, but its run has no end"));
        }
    }
}

#[cfg(test)]
pub(super) mod planted;
