//! An eye on the ledger's rows: every change of each, judged as it happens.

use std::collections::{BTreeMap, BTreeSet};

use runner::internal::firing::State;
use runner::internal::ledger::FiringId;

use super::plan::Tick;
use super::servers::{EPOCH, ledger_time};
use crate::book::{Book, Row};

/// How far a replica's clock may be ahead.
const SKEW: i64 = 100;

/// One run that the ledger allowed.
#[derive(Clone, Debug)]
pub(crate) struct Licence {
    pub(crate) job: String,
    pub(crate) exclusive: bool,
    pub(crate) from: Tick,
    /// When the ledger called it over; not yet, if none.
    pub(crate) until: Option<Tick>,
    /// Its lease as the last heartbeat left it.
    pub(crate) lease_until: Tick,
}

#[derive(Debug, Default)]
pub(crate) struct Watch {
    rows: BTreeMap<FiringId, Row>,
    pub(crate) licences: BTreeMap<i64, Licence>,
    pub(crate) breaches: Vec<String>,
    lost: BTreeSet<FiringId>,
}

impl Watch {
    /// Looks at what has just been written.
    pub(crate) fn look(&mut self, at: Tick, book: &mut Book) {
        for id in book.touched() {
            let Some(row) = book.row(id) else { continue };
            let old = self.rows.get(&id).filter(|old| *old != row).cloned();
            if old.is_none() && self.rows.contains_key(&id) {
                continue;
            }
            self.changed(at, old.as_ref(), row);
            self.rows.insert(id, row.clone());
        }
    }

    /// Whether a firing was ever lost.
    pub(crate) fn was_lost(&self, id: FiringId) -> bool {
        self.lost.contains(&id)
    }

    fn breach(&mut self, at: Tick, what: &str, row: &Row) {
        let Row { job, scheduled_at, state, reason, attempt, fence, .. } = row;
        self.breaches.push(format!(
            "at {at}: {what}: {job} {} is {state} ({reason:?}), attempt {attempt}, fence {fence:?}",
            scheduled_at - EPOCH
        ));
    }

    fn changed(&mut self, at: Tick, old: Option<&Row>, new: &Row) {
        use State::{Cancelled, Failed, Lost, Queued, Running, Skipped, Succeeded};
        let legal = match (old.map(|old| old.state), new.state) {
            (None, Queued | Running | Skipped)
            | (Some(Queued), Running | Skipped | Failed | Cancelled)
            | (Some(Running), Running | Queued | Succeeded | Failed | Lost | Cancelled)
            // The late result of a lost run; afterwards it is as final as any other.
            | (Some(Lost), Succeeded | Failed) => true,
            _ => false,
        };
        if new.state == Lost {
            self.lost.insert(new.id);
        }
        if !legal {
            self.breach(at, "no such change", new);
        }
        let same_run = old.is_some_and(|old| old.state == Running && old.fence == new.fence);
        if let Some(old) = old.filter(|old| old.state == Running && !(new.state == Running && same_run)) {
            self.ended(at, old);
        }
        if new.state == Running && !same_run {
            self.began(at, old, new);
        }
        if new.state == Running
            && let Some(licence) = new.fence.and_then(|fence| self.licences.get_mut(&fence))
        {
            licence.lease_until = tick(new.lease_until.unwrap_or(EPOCH));
        }
    }

    fn ended(&mut self, at: Tick, old: &Row) {
        if let Some(licence) = old.fence.and_then(|fence| self.licences.get_mut(&fence)) {
            licence.until = Some(at);
        }
    }

    fn began(&mut self, at: Tick, old: Option<&Row>, new: &Row) {
        let fence = new.fence.unwrap_or_default();
        if self.licences.keys().next_back().is_some_and(|highest| *highest >= fence) {
            self.breach(at, "the fence does not grow", new);
        }
        if new.attempt != old.map_or(0, |old| old.attempt) + 1 {
            self.breach(at, "the attempts have a gap", new);
        }
        if ledger_time(at) + SKEW < new.scheduled_at {
            self.breach(at, "it runs early", new);
        }
        let beside = |other: &&Licence| {
            other.exclusive && new.exclusive && other.until.is_none() && other.job == new.job.as_str()
        };
        if let Some(other) = self.licences.values().find(beside) {
            let other = format!("licensed beside {other:?}");
            self.breach(at, &other, new);
        }
        let licence = Licence {
            job: new.job.to_string(),
            exclusive: new.exclusive,
            from: at,
            until: None,
            lease_until: 0,
        };
        self.licences.insert(fence, licence);
    }
}

fn tick(millis: i64) -> Tick {
    Tick::try_from(millis - EPOCH).unwrap_or(0)
}
