//! What must hold of a whole world, when it is over.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, Utc};
use testbed::Effect;
use testbed::oracle::{Attempt, History, Row as Told, Timetable, Witness};

use super::errand::{DECKS, Deed, JOBS};
use super::machine::NAMESPACE;
use super::plan::{Mode, Plan, TTL, Tick};
use super::servers::{EPOCH, ledger_time};
use super::watch::{Licence, Watch};
use crate::book::{Book, Row, instant};

/// The longest time between two rounds of a caretaker, with what its calls take.
const SWEEP: Tick = 1_500;
/// How late a firing may be while nothing is in its way but what a network does.
const LATE: Tick = 1_000;

/// How long a run may take to end when it was told to: the jobs' `kill_grace`, and a timer's roundness.
const GRACE: Tick = TTL / 6 + 5;

/// A time in which a replica stood still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Freeze {
    pub(crate) replica: usize,
    pub(crate) from: Tick,
    pub(crate) until: Tick,
    /// How long after it a replica may take to see what time it is.
    pub(crate) daze: Tick,
}

impl Freeze {
    /// Whether it befell a run of this replica.
    fn is_in(&self, replica: usize, from: Tick, until: Tick) -> bool {
        self.replica == replica && from < self.until && self.from <= until
    }
}

/// Everything that is known of a world.
pub(crate) struct Evidence<'w> {
    pub(crate) plan: &'w Plan,
    pub(crate) book: &'w Book,
    pub(crate) watch: &'w Watch,
    pub(crate) deeds: &'w [Deed],
    pub(crate) freezes: &'w [Freeze],
}

impl Evidence<'_> {
    /// Every breach of a promise, in words.
    pub(crate) fn judge(&self) -> Vec<String> {
        let mut breaches = self.watch.breaches.clone();
        self.work_ends_with_its_lease(&mut breaches);
        let judgement = self.history().judge();
        breaches
            .extend(judgement.breaches.iter().map(|breach| format!("{}: {}", breach.invariant, breach.what)));
        if self.plan.mode == Mode::Liveness {
            self.the_core_gets_on(&mut breaches);
        }
        breaches
    }

    /// Runs by fence: their first and last moments.
    fn runs(&self) -> BTreeMap<i64, (usize, Tick, Tick)> {
        let mut runs = BTreeMap::new();
        for deed in self.deeds {
            let run = runs.entry(deed.fence).or_insert((deed.replica, deed.at, deed.at));
            run.2 = deed.at.max(run.2);
        }
        runs
    }

    fn stood_still(&self, replica: usize, from: Tick, until: Tick) -> bool {
        self.freezes.iter().any(|freeze| freeze.is_in(replica, from, until))
    }

    /// No run begins after its lease, and none goes on beyond it; but that a process which stood still can
    /// stop its work only when it wakes.
    fn work_ends_with_its_lease(&self, breaches: &mut Vec<String>) {
        for (fence, (replica, from, until)) in self.runs() {
            let Some(licence) = self.watch.licences.get(&fence) else { continue };
            let over = licence.until.map_or(licence.lease_until, |over| over.max(licence.lease_until));
            if from < licence.from || from > over {
                breaches.push(format!("a run without a licence: fence {fence} began at {from}, {licence:?}"));
            }
            let woken = self.freezes.iter().filter(|freeze| freeze.is_in(replica, from, until));
            let stopped = woken.map(|freeze| freeze.until + freeze.daze + GRACE).fold(over, Tick::max);
            if until > stopped {
                breaches.push(format!("a run outlives its lease: fence {fence} until {until}, {licence:?}"));
            }
        }
    }

    /// The world as the independent judge of the real replicas wants it.
    fn history(&self) -> History {
        let of_window = |row: &&Row| row.scheduled_at <= ledger_time(self.plan.heal);
        let rows: Vec<Told> = self.book.rows().filter(of_window).map(told).collect();
        let attempts = self.book.attempts().filter(|(id, _)| rows.iter().any(|row| row.id == id.0));
        let attempts = attempts.map(|(id, attempt)| Attempt {
            firing_id: id.0,
            attempt: attempt.attempt,
            fence: attempt.fence,
            started_at: attempt.started_at,
            ended_at: attempt.ended_at,
            owner: attempt.owner.clone(),
            reason: attempt.reason.to_string(),
        });
        History {
            attempts: attempts.collect(),
            effects: self.effects(),
            timetables: self.timetables().collect(),
            rows,
            witness: Witness::default(),
        }
    }

    fn effects(&self) -> Vec<Effect> {
        let runs = self.runs();
        let of_window = |deed: &&Deed| deed.scheduled_at <= ledger_time(self.plan.heal);
        let effect = |deed: &Deed| {
            let licence = self.watch.licences.get(&deed.fence);
            let (replica, from, until) = runs[&deed.fence];
            let over = licence.and_then(|licence: &Licence| licence.until).unwrap_or(Tick::MAX);
            let at = if self.stood_still(replica, from, until) { deed.at.min(over) } else { deed.at };
            Effect {
                kind: deed.kind,
                job: deed.job.clone(),
                scheduled_at: instant(deed.scheduled_at),
                shard: 0,
                attempt: deed.attempt,
                fence: deed.fence,
                at: instant(ledger_time(at)),
                key: String::new(),
            }
        };
        self.deeds.iter().filter(of_window).map(effect).collect()
    }

    fn timetables(&self) -> impl Iterator<Item = Timetable> {
        let known =
            |name: &str| self.book.jobs(NAMESPACE).find(|job| job.name == name).map(|job| job.known_since);
        let until = ledger_time(self.plan.heal);
        self.jobs().filter_map(move |(name, every, jitter)| {
            Some(Timetable {
                job: name.to_owned(),
                from: instant(known(name)?),
                until: instant(until - i64::try_from(jitter).expect("a short jitter")),
                every: Duration::from_secs(every),
            })
        })
    }

    fn jobs(&self) -> impl Iterator<Item = (&'static str, u64, Tick)> {
        let deck = DECKS[self.plan.deck];
        JOBS.iter()
            .filter(|(name, ..)| deck.contains(name))
            .map(|(name, every, jitter, _)| (*name, *every, *jitter))
    }

    /// Within two leases and a sweep of the heal everything that was due has its row; from then on
    /// everything has one on time, whatever is wrong with the third replica.
    fn the_core_gets_on(&self, breaches: &mut Vec<String>) {
        let recovered = self.plan.heal + 2 * TTL + SWEEP;
        for (name, every, jitter) in self.jobs() {
            let Some(known) =
                self.book.jobs(NAMESPACE).find(|job| job.name == name).map(|job| job.known_since)
            else {
                breaches.push(format!("liveness: {name} was never registered"));
                continue;
            };
            let written: BTreeMap<i64, &Row> = self
                .book
                .rows()
                .filter(|row| row.job.as_str() == name)
                .map(|row| (row.scheduled_at, row))
                .collect();
            let (mut late, mut ran) = (0, 0);
            let mut due = every * 1_000;
            while due + jitter + LATE < self.plan.end {
                let scheduled_at = ledger_time(due);
                let by = ledger_time(recovered.max(due + jitter + LATE));
                if scheduled_at > known {
                    match written.get(&scheduled_at) {
                        Some(row) if row.created_at <= by => {}
                        Some(row) => breaches.push(format!(
                            "liveness: {name} {due} got its row only at {}",
                            row.created_at - EPOCH
                        )),
                        None if ledger_time(self.plan.end) > by => {
                            breaches.push(format!("liveness: {name} {due} has no row"));
                        }
                        None => {}
                    }
                    if due > recovered {
                        late += 1;
                        let in_time = |row: &&&Row| {
                            row.started_at.is_some_and(|at| at <= ledger_time(due + jitter + LATE))
                        };
                        ran += u32::from(written.get(&scheduled_at).filter(in_time).is_some());
                    }
                }
                due += every * 1_000;
            }
            // One may find the job still at what was left of before.
            if ran + 1 < late {
                breaches
                    .push(format!("liveness: of {late} firings of {name} after the heal {ran} ran on time"));
            }
        }
    }
}

fn told(row: &Row) -> Told {
    let time = |millis: Option<i64>| -> Option<DateTime<Utc>> { millis.map(instant) };
    Told {
        id: row.id.0,
        job: row.job.to_string(),
        scheduled_at: instant(row.scheduled_at),
        state: row.state.as_str().to_owned(),
        reason: row.reason.map_or_else(String::new, |reason| reason.to_string()),
        attempt: row.attempt,
        crashes: row.crashes,
        fence: row.fence,
        exclusive: row.exclusive,
        delivery: row.delivery.as_str().to_owned(),
        started_at: time(row.started_at),
        finished_at: time(row.finished_at),
    }
}
