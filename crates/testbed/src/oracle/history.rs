//! The input of the check.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::{Counts, Witness, alarms, trail};
use crate::{Effect, EffectKind};

/// A firing's instant may be earlier than the moment when the ledger knew the job, by at most this.
const HEAD_START: TimeDelta = TimeDelta::seconds(1);

/// A firing's row: the columns that the check needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The row's number.
    pub id: i64,
    /// Its job.
    pub job: String,
    /// Its nominal instant.
    pub scheduled_at: DateTime<Utc>,
    /// Its state.
    pub state: String,
    /// Why.
    pub reason: String,
    /// Runs so far.
    pub attempt: u32,
    /// Lost owners and interruptions so far.
    pub crashes: u32,
    /// The newest fence.
    pub fence: Option<i64>,
    /// Whether it excludes other runs of its job.
    pub exclusive: bool,
    /// What happens when an owner is lost.
    pub delivery: String,
    /// When the newest attempt was claimed.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
}

/// An attempt that a later one superseded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Of which row.
    pub firing_id: i64,
    /// Which, from 1.
    pub attempt: u32,
    /// Its fence.
    pub fence: i64,
    /// When it was claimed.
    pub started_at: Option<DateTime<Utc>>,
    /// When it was superseded.
    pub ended_at: DateTime<Utc>,
    /// Its owner.
    pub owner: String,
    /// Why it was superseded.
    pub reason: String,
}

/// The firings that the schedule of a job requires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timetable {
    /// The job.
    pub job: String,
    /// When the ledger began to know the job.
    pub from: DateTime<Utc>,
    /// Every firing up to this moment must have a row.
    pub until: DateTime<Utc>,
    /// There is one firing at each multiple of this since 1970.
    pub every: Duration,
}

/// The history of one deployment.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The ledger's rows.
    pub rows: Vec<Row>,
    /// The ledger's superseded attempts.
    pub attempts: Vec<Attempt>,
    /// The effects of the jobs, counted outside the product.
    pub effects: Vec<Effect>,
    /// The firings that should have happened.
    pub timetables: Vec<Timetable>,
    /// What was recorded from outside while it happened. Where it is empty, the invariants that need it are not
    /// checked.
    pub witness: Witness,
}

/// One run that the ledger allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct License<'h> {
    pub(super) row: &'h Row,
    pub(super) attempt: u32,
    pub(super) fence: i64,
    pub(super) started_at: Option<DateTime<Utc>>,
}

impl Timetable {
    /// Every instant that it requires, oldest first.
    pub(super) fn instants(&self) -> impl Iterator<Item = DateTime<Utc>> {
        let every = i64::try_from(self.every.as_secs()).unwrap_or(i64::MAX).max(1);
        let first = self.from.timestamp().div_euclid(every) + 1;
        let last = self.until.timestamp().div_euclid(every);
        (first..=last).filter_map(move |tick| DateTime::from_timestamp(tick * every, 0))
    }

    /// Whether this instant is in the schedule, also after the end. A replica begins to fire just before the ledger
    /// knows its jobs, and a firing with jitter is due after its instant. So slightly earlier instants are accepted.
    pub(super) fn asks_for(&self, instant: DateTime<Utc>) -> bool {
        let every = i64::try_from(self.every.as_millis()).unwrap_or(i64::MAX).max(1);
        instant > self.from - HEAD_START && instant.timestamp_millis() % every == 0
    }
}

impl History {
    /// Every run that the ledger allowed, by fence.
    pub(super) fn licenses(&self) -> BTreeMap<i64, Vec<License<'_>>> {
        let rows: BTreeMap<i64, &Row> = self.rows.iter().map(|row| (row.id, row)).collect();
        let mut licenses: BTreeMap<i64, Vec<License<'_>>> = BTreeMap::new();
        for row in &self.rows {
            if let Some(fence) = row.fence {
                let license = License { row, attempt: row.attempt, fence, started_at: row.started_at };
                licenses.entry(fence).or_default().push(license);
            }
        }
        for old in &self.attempts {
            let Some(row) = rows.get(&old.firing_id) else { continue };
            // A queued row still has the fence of its newest attempt, and that attempt is also among the superseded.
            if row.fence == Some(old.fence) && row.attempt == old.attempt {
                continue;
            }
            let license = License { row, attempt: old.attempt, fence: old.fence, started_at: old.started_at };
            licenses.entry(old.fence).or_default().push(license);
        }
        licenses
    }

    pub(super) fn starts(&self) -> impl Iterator<Item = &Effect> {
        self.effects.iter().filter(|effect| effect.kind == EffectKind::Start)
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            due: self.timetables.iter().map(|timetable| timetable.instants().count()).sum(),
            rows: self.rows.len(),
            starts: self.starts().count(),
            repeats: self.starts().filter(|effect| effect.attempt > 1).count(),
            doubled: 0,
            missing: 0,
            takeovers: alarms::takeovers(self),
            slowest_recovery: trail::slowest_recovery(self).and_then(|span| span.to_std().ok()),
        }
    }
}
