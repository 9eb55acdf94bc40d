//! What fell due for one job while nobody decided about it, and the rows that tell of it.
//!
//! It may be the past of years, for example when a clock that began in 1970 is set right. So only what may still run, and
//! the newest of the rest, is looked at one by one.

use std::collections::BTreeSet;

use chrono::{DateTime, TimeDelta, Utc};

use crate::config::JobSpec;
use crate::ledger::Horizon;
use crate::rules::Ruling;
use crate::schedule;

/// The newest missed firings get a row each; the older ones are counted in the oldest of those.
pub(super) const MISSED_ROWS: usize = 100;
/// Instants that have to be counted one by one are counted up to this many.
const MOST_COUNTED: usize = 100_000;

/// Instants that are too old to run and too many to look at: the first of them, and how many there are. `Err` is a
/// number that there are more than.
pub(super) type Earlier = (DateTime<Utc>, Result<usize, usize>);

/// The instants of a job that fell due after its horizon and until `until`, oldest first. Of a long past only the newest
/// are listed, for the others are counted anyway.
pub(super) fn due(
    spec: &JobSpec,
    horizon: &Horizon,
    until: DateTime<Utc>,
    now: DateTime<Utc>,
) -> (Vec<DateTime<Utc>>, Option<Earlier>) {
    let jitter = TimeDelta::from_std(spec.jitter).unwrap_or(TimeDelta::zero());
    let (from, earlier) = skip_the_oldest(spec, horizon, until.min(too_old_before(spec, now)));
    let mut instants = Vec::new();
    for instant in spec.timetable.between(from - jitter, until) {
        let due = due_at(spec, instant);
        if due > from && due <= until {
            instants.push(instant);
        }
    }
    (instants, earlier)
}

/// Moves the horizon over a past of which nothing may run any more, but for what gets rows: all before `edge` is too old.
/// Without it a clock that began in 1970 would leave billions of firings to look at.
fn skip_the_oldest(
    spec: &JobSpec,
    horizon: &Horizon,
    edge: DateTime<Utc>,
) -> (DateTime<Utc>, Option<Earlier>) {
    let from = horizon.decided_until;
    let in_rows = |after: DateTime<Utc>, until: DateTime<Utc>| {
        let there: BTreeSet<_> = horizon.rows.iter().map(|(instant, _)| *instant).collect();
        there.into_iter().filter(|instant| *instant > after && *instant <= until).count()
    };
    let mut back = TimeDelta::hours(1);
    loop {
        let Some(start) = edge.checked_sub_signed(back).filter(|start| *start > from) else {
            return (from, None);
        };
        // One more than get rows, so that one of those listed ends the count of the others.
        let wanted = MISSED_ROWS + 1 + in_rows(start, edge);
        if spec.timetable.count(start, edge, wanted).is_ok_and(|count| count < wanted) {
            back = back * 4;
            continue;
        }
        let Some(first) = spec.timetable.next(from).filter(|first| *first <= start) else {
            return (from, None);
        };
        let less = in_rows(from, start);
        let count = spec.timetable.count(from, start, MOST_COUNTED);
        let count = count.map(|count| count.saturating_sub(less)).map_err(|limit| limit.saturating_sub(less));
        return (start, Some((first, count)));
    }
}

/// A moment before which nothing of the job may run any more.
fn too_old_before(spec: &JobSpec, now: DateTime<Utc>) -> DateTime<Utc> {
    let span = TimeDelta::from_std(spec.start_deadline.saturating_add(spec.jitter.saturating_mul(2)));
    span.ok().and_then(|span| now.checked_sub_signed(span)).unwrap_or(DateTime::<Utc>::MIN_UTC)
}

pub(super) fn due_at(spec: &JobSpec, instant: DateTime<Utc>) -> DateTime<Utc> {
    instant + schedule::delay(&spec.name, instant, spec.jitter)
}

/// A row for each firing that runs and for the newest ones that do not. The detail of the oldest row counts the rest.
pub(super) fn rows(
    rulings: &[(DateTime<Utc>, Ruling)],
    earlier: Option<Earlier>,
) -> Vec<(DateTime<Utc>, bool, Option<String>)> {
    let missed = rulings.iter().filter(|(_, ruling)| *ruling == Ruling::Skip).count();
    let mut untold = missed.saturating_sub(MISSED_ROWS);
    let mut swallowed: Option<(DateTime<Utc>, DateTime<Utc>, usize)> = None;
    let mut rows = Vec::new();
    for (instant, ruling) in rulings {
        if *ruling == Ruling::Run {
            rows.push((*instant, true, None));
        } else if untold > 0 {
            untold -= 1;
            let (first, _, count) = swallowed.unwrap_or((*instant, *instant, 0));
            swallowed = Some((first, *instant, count + 1));
        } else {
            let detail = swallowed.take().map(|(first, last, count)| {
                let (first, before) = earlier.map_or((first, Ok(0)), |(first, before)| (first, before));
                let (first, last) = (crate::firing::instant(first), crate::firing::instant(last));
                let count = match before {
                    Ok(before) => (before + count).to_string(),
                    Err(before) => format!("more than {}", before + count),
                };
                format!("and {count} earlier ones were missed, from {first} to {last}")
            });
            rows.push((*instant, false, detail));
        }
    }
    rows
}
