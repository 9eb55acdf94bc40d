//! A ledger in memory: what the statements of the real ones do, as plain steps on plain rows.
//!
//! It knows nothing of time or of networks: each step is told the moment it happens at. The suite that
//! every ledger has to pass holds it to what it stands for, and [`Flaw`]s break it on purpose.

mod corridor;
mod gaps;
pub(crate) mod memory;
mod queue;
mod tables;

pub(crate) use tables::{Job, Row};

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use runner::internal::firing::{Reason, State};
use runner::internal::ledger::{AttemptRow, FiringId, Run};

/// A moment, in milliseconds since 1970.
pub(crate) type Millis = i64;

/// One condition that a broken book leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// A claim does not mind that the firing has a row.
    ClaimsTwice,
    /// Exclusive runs do not exclude one another.
    Overlaps,
    /// A claim does not mind that the firing is not due.
    ClaimsEarly,
    /// A settle asks for nothing but the row.
    SettlesAnything,
    /// A heartbeat does not move the lease.
    ForgetsHeartbeats,
    /// A vanished owner's run is queued again, whatever its delivery.
    RunsLostAgain,
    /// A claim repeats the fence of the one before.
    RepeatsFences,
    /// Nobody writes rows for gaps.
    LeavesGaps,
}

/// All namespaces of one ledger.
#[derive(Debug, Default)]
pub(crate) struct Book {
    jobs: BTreeMap<(String, String), Job>,
    rows: BTreeMap<FiringId, Row>,
    /// `runner_firings_once`.
    once: BTreeMap<tables::Key, FiringId>,
    attempts: BTreeMap<(FiringId, u32), AttemptRow>,
    minted: i64,
    numbered: i64,
    /// Rows that were written since somebody last asked.
    touched: Vec<FiringId>,
    flaw: Option<Flaw>,
}

impl Book {
    /// An empty book that leaves out one condition.
    pub(crate) fn with(flaw: Option<Flaw>) -> Self {
        Self { flaw, ..Self::default() }
    }

    fn has(&self, flaw: Flaw) -> bool {
        self.flaw == Some(flaw)
    }

    /// Every row, by its number.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }

    /// One row.
    pub(crate) fn row(&self, id: FiringId) -> Option<&Row> {
        self.rows.get(&id)
    }

    /// Superseded attempts, with the row they belong to.
    pub(crate) fn attempts(&self) -> impl Iterator<Item = (FiringId, &AttemptRow)> {
        self.attempts.iter().map(|((id, _), attempt)| (*id, attempt))
    }

    /// Runs of a firing that failed and were given another try.
    fn failures(&self, id: FiringId) -> u32 {
        self.attempts().filter(|(of, attempt)| *of == id && attempt.reason == Reason::Retry).count() as u32
    }

    /// Jobs of a namespace, by name.
    pub(crate) fn jobs<'b>(&'b self, namespace: &'b str) -> impl Iterator<Item = &'b Job> {
        self.jobs.iter().filter(move |((of, _), _)| of == namespace).map(|(_, job)| job)
    }

    /// The rows that were written since the last call.
    pub(crate) fn touched(&mut self) -> Vec<FiringId> {
        std::mem::take(&mut self.touched)
    }

    fn job(&self, namespace: &str, name: &str) -> Option<&Job> {
        self.jobs.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// The exclusive run that stands in the way of another of this job and shard.
    fn blocker(&self, namespace: &str, job: &str, shard: u32) -> Option<&Row> {
        self.rows.values().find(|row| {
            row.state == State::Running && row.exclusive && row.is_of(namespace, job) && row.shard == shard
        })
    }

    fn mint(&mut self) -> i64 {
        if !self.has(Flaw::RepeatsFences) || self.minted % 2 == 0 {
            self.minted += 1;
        } else {
            self.minted += 2;
            return self.minted - 2;
        }
        self.minted
    }

    /// Writes a new row; the caller has seen that the firing has none.
    fn insert(&mut self, row: Row) -> FiringId {
        self.numbered += 1;
        let id = FiringId(self.numbered);
        self.once.insert(row.key(), id);
        self.rows.insert(id, Row { id, ..row });
        self.touched.push(id);
        id
    }

    fn running(&mut self, namespace: &str, run: Run) -> Option<&mut Row> {
        self.of_run(namespace, run).filter(|row| row.state == State::Running)
    }

    /// The row of a run, if it is still under this fence.
    fn of_run(&mut self, namespace: &str, run: Run) -> Option<&mut Row> {
        let anything = self.has(Flaw::SettlesAnything);
        let row = self.rows.get_mut(&run.id)?;
        let ours = row.namespace == namespace && (row.fence == Some(run.fence.0) || anything);
        if !ours {
            return None;
        }
        self.touched.push(run.id);
        Some(row)
    }
}

/// A moment as rows show it.
pub(crate) fn instant(millis: Millis) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(millis).expect("a moment within a thousand years")
}

/// A span as the book counts it.
pub(crate) fn millis(span: std::time::Duration) -> Millis {
    const MAX: Millis = 1_000 * 366 * 86_400_000;
    Millis::try_from(span.as_millis()).map_or(MAX, |millis| millis.min(MAX))
}
