//! The regular work of every replica besides firing: it registers its jobs, polls the queue, sweeps and prunes.

use std::collections::{BTreeSet, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use lockcore::BootInstant;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

use super::executor::{Executor, Ticket};
use super::job_set::{JobSet, SharedJobs, registration};
use super::reconcile;
use super::sweep::{Sweep, SweepTerms};
use crate::firing::{Reason, State};
use crate::ledger::{Due, FiringId, Housekeeping, LedgerError, Opened};
use crate::registry::BoundJob;
use crate::telemetry;

/// How many queued firings one poll takes.
const POLL_LIMIT: u32 = 500;
/// The least time between two polls, however many runs end.
const POLL_APART: Duration = Duration::from_millis(20);
/// `max_crashes` of a job that is not in our file.
const USUAL_MAX_CRASHES: u32 = 3;
/// How often ended rows are pruned, and how many at once.
const PRUNE_EVERY: Duration = Duration::from_secs(60 * 60);
const PRUNE_AGAIN: Duration = Duration::from_secs(60);
const PRUNE_BATCH: u32 = 1_000;

/// Does these rounds for one replica.
#[derive(Debug)]
pub(crate) struct Caretaker {
    executor: Arc<Executor>,
    ledger: Opened,
    jobs: SharedJobs,
    firings: TaskTracker,
    sweep: Sweep,
    in_hand: InHand,
    /// Whether the ledger knows the newest set of jobs.
    registered: bool,
    reconciled: Option<BootInstant>,
}

/// Queued firings that this replica is already walking through the corridor.
#[derive(Clone, Debug, Default)]
struct InHand(Arc<Mutex<HashSet<FiringId>>>);

impl InHand {
    fn take(&self, id: FiringId) -> Option<Held> {
        let fresh = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id);
        fresh.then(|| Held { id, of: self.clone() })
    }
}

/// One firing in hand. Dropping it takes the firing out of hand.
struct Held {
    id: FiringId,
    of: InHand,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.of.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

impl Caretaker {
    /// A caretaker for `jobs`. It does nothing until it runs.
    #[must_use]
    pub(crate) fn new(
        executor: Arc<Executor>,
        ledger: Opened,
        jobs: SharedJobs,
        firings: TaskTracker,
    ) -> Self {
        Self {
            executor,
            ledger,
            jobs,
            firings,
            sweep: Sweep::default(),
            in_hand: InHand::default(),
            registered: false,
            reconciled: None,
        }
    }

    /// Does rounds until the replica drains.
    pub(crate) async fn run(mut self) {
        let drain = self.executor.site.drain.clone();
        loop {
            let round = async {
                self.executor.site.pulse.beating().await;
                let jobs = self.newest_jobs();
                let done = self.round(&jobs).await;
                self.note(done);
                let period = Duration::from_secs(1).min(jobs.shortest_ttl() / 2);
                let polled = self.rest(self.pause(period)).await;
                self.note(polled);
            };
            tokio::select! {
                biased;
                () = drain.closing() => return,
                () = round => {}
            }
        }
    }

    /// A random pause between half a period and a whole one. Suppose a job fires every second. With a fixed pause
    /// every round could come while it runs, and the firing that waits for it would never start.
    fn pause(&self, period: Duration) -> Duration {
        let half = period / 2;
        half + half.mul_f64(self.executor.site.jitter.draw() as f64 / u64::MAX as f64)
    }

    fn newest_jobs(&mut self) -> Arc<JobSet> {
        // An error means that the set cannot change any more.
        if self.jobs.has_changed().unwrap_or(false) {
            self.registered = false;
        }
        self.jobs.borrow_and_update().clone()
    }

    fn note(&self, done: Result<(), LedgerError>) {
        if let Err(error) = done {
            self.executor.site.pulse.lost(&error);
            if !error.is_unavailable() {
                warn!(error = &error as &dyn std::error::Error, "upkeep failed");
            }
        }
    }

    /// Waits for the next round. Meanwhile it polls the queue whenever a run has ended. Otherwise a firing that waits
    /// for a job which runs nearly all the time would never start.
    async fn rest(&self, span: Duration) -> Result<(), LedgerError> {
        let over = tokio::time::sleep(span);
        tokio::pin!(over);
        loop {
            tokio::select! {
                biased;
                () = &mut over => return Ok(()),
                () = self.executor.turn.notified() => self.poll().await?,
            }
            tokio::time::sleep(POLL_APART).await;
        }
    }

    /// The reconciliation comes last. If someone keeps a job's row locked, it has to wait for that row, and the queue
    /// and the sweep of all other jobs must not.
    async fn round(&mut self, jobs: &JobSet) -> Result<(), LedgerError> {
        self.register(jobs).await?;
        self.poll().await?;
        let terms = |name: &str| match jobs.get(name) {
            Some(job) => SweepTerms { ttl: job.spec.budget.ttl, max_crashes: job.spec.max_crashes },
            None => SweepTerms { ttl: jobs.usual_ttl(), max_crashes: USUAL_MAX_CRASHES },
        };
        let swept = self.sweep.once(&*self.executor.site.clock, &*self.ledger.sweeping, terms).await?;
        if !swept.is_empty() {
            self.poll().await?;
        }
        for run in swept {
            count(jobs, &run.job, run.state, run.reason);
        }
        for expired in self.ledger.queue.expire(POLL_LIMIT).await? {
            warn!(job = expired.job, id = expired.id.0, state = %expired.state, "a queued firing waited too long");
            count(jobs, &expired.job, expired.state, Some(expired.reason));
        }
        self.reconcile(jobs).await
    }

    /// Makes the jobs known to the ledger. From then on each of their due moments gets a row.
    async fn register(&mut self, jobs: &JobSet) -> Result<(), LedgerError> {
        if !self.registered {
            self.ledger.housekeeping.register(&jobs.registrations()).await?;
            self.registered = true;
        }
        Ok(())
    }

    /// Looks for gaps at the start, and then often enough to find each one within a ttl.
    async fn reconcile(&mut self, jobs: &JobSet) -> Result<(), LedgerError> {
        let now = self.executor.site.clock.boot_now();
        let every = (jobs.shortest_ttl() / 2).clamp(Duration::from_secs(1), Duration::from_secs(10));
        if self.reconciled.is_some_and(|last| now.saturating_since(last) < every) {
            return Ok(());
        }
        let pulse = &self.executor.site.pulse;
        if !pulse.is_clock_settled() {
            return Ok(());
        }
        let unknown = reconcile::once(&*self.ledger.gaps, jobs, pulse.now(), || pulse.is_beating()).await?;
        if !unknown.is_empty() {
            let names: Vec<_> = unknown.iter().map(|job| job.spec.name.as_str()).collect();
            warn!(jobs = ?names, "the ledger has forgotten that it knew these jobs; telling it again");
            let unknown: Vec<_> = unknown.iter().map(|job| registration(job)).collect();
            self.ledger.housekeeping.register(&unknown).await?;
        }
        self.reconciled = Some(now);
        Ok(())
    }

    /// Starts what is due. Of firings that exclude each other it starts the one that has waited longest. The others
    /// could only delay it, and one of them might overtake it.
    async fn poll(&self) -> Result<(), LedgerError> {
        let jobs = self.jobs.borrow().clone();
        let mut first = BTreeSet::new();
        for due in self.ledger.queue.due(&jobs.names(), POLL_LIMIT).await? {
            let Some(job) = jobs.get(due.firing.job.as_str()) else { continue };
            if !job.spec.overlap.is_exclusive() || first.insert((due.firing.job.clone(), due.firing.shard)) {
                self.take_up(job.clone(), due);
            }
        }
        Ok(())
    }

    fn take_up(&self, job: Arc<BoundJob>, due: Due) {
        let Some(held) = self.in_hand.take(due.id) else { return };
        let executor = self.executor.clone();
        self.firings.spawn(async move {
            let fate = executor.execute(&job, Ticket::Queued(due)).await;
            debug!(job = %job.spec.name, ?fate, "walked");
            drop(held);
        });
    }
}

/// Removes what ended longer than `retention` ago, now and once an hour, until the replica drains.
///
/// This is not part of the rounds: after a shorter retention was set it may take minutes, and neither the queue nor
/// the sweep may wait for that.
pub(crate) async fn prune(executor: Arc<Executor>, housekeeping: Arc<dyn Housekeeping>, retention: Duration) {
    let prune = async {
        loop {
            executor.site.pulse.beating().await;
            let pause = match housekeeping.prune(retention, PRUNE_BATCH).await {
                Ok(rows) => {
                    if rows > 0 {
                        info!(rows, "pruned ended firings");
                    }
                    PRUNE_EVERY
                }
                Err(error) => {
                    executor.site.pulse.lost(&error);
                    warn!(error = &error as &dyn std::error::Error, "could not prune; trying again later");
                    PRUNE_AGAIN
                }
            };
            tokio::time::sleep(pause).await;
        }
    };
    tokio::select! {
        biased;
        () = executor.site.drain.closing() => {}
        () = prune => {}
    }
}

/// Counts the end of a firing if its job is in our file. Otherwise the number of labels would have no limit.
fn count(jobs: &JobSet, job: &str, state: State, reason: Option<Reason>) {
    if let Some(job) = jobs.get(job) {
        telemetry::firing(&job.spec.name, state, reason);
    }
}
