//! Steps two, three and seven: the lock, taken, kept and released.

use std::time::Duration;

use lockcore::{
    AcquireRequest, Acquisition, DoneMark, InvalidKey, LeaseGuard, LeaseReport, LockKey, Locks, Loss,
    ReleaseOutcome, Terms, Token,
};
use tracing::{debug, error, warn};
use uuid::Uuid;

use super::Executor;
use super::passage::{Fate, Passage, Step};
use crate::config::OnUnavailable;
use crate::firing::Firing;
use crate::registry::BoundJob;
use crate::telemetry::{self, LockAnswer, RenewalAnswer};

/// The first part of every lock key.
const KEY_PREFIX: &str = "runner";

/// What keeps other firings of the job away.
#[derive(Debug)]
pub(super) enum Hold {
    /// The lock, kept alive.
    Locked {
        guard: LeaseGuard,
        /// What a done marker would name, for firings that may leave one.
        subject: Option<String>,
        counted: Renewals,
        /// Whether it was someone else's when it was last renewed. This has been told, and there is nothing to release.
        is_lost: bool,
    },
    /// The lock's server is away, and the job may run without a lock.
    LedgerOnly,
    /// The job takes no lock.
    Unlocked,
}

/// How many renewals of a lock have been counted so far.
#[derive(Debug, Default)]
pub(super) struct Renewals {
    renewed: u32,
    failed: u32,
}

impl Renewals {
    /// Counts the renewals since the last call.
    fn count(&mut self, report: &LeaseReport) {
        telemetry::lock_renewals(RenewalAnswer::Renewed, report.renewals_ok.saturating_sub(self.renewed));
        telemetry::lock_renewals(RenewalAnswer::Failed, report.renewals_failed.saturating_sub(self.failed));
        *self = Self { renewed: report.renewals_ok, failed: report.renewals_failed };
    }
}

/// The result of the try to take a lost lock again.
pub(super) enum Retaken {
    /// It is ours.
    Ours,
    /// Someone else has it, or the lock server did not answer.
    NotNow,
    /// It is not to be taken again.
    Never,
}

/// The result of the try to take the lock.
pub(super) enum Taken {
    /// Go on.
    Hold(Hold),
    /// Another replica runs this firing, or has run it.
    Elsewhere,
    /// It is held for something else. The ledger has to say what that means.
    Busy,
    /// The lock's server is away and the job does not run without it.
    Unreachable,
}

impl Executor {
    pub(super) async fn take(&self, job: &BoundJob, pass: &mut Passage) -> Taken {
        let spec = &job.spec;
        if !spec.guard.takes_the_lock() {
            return Taken::Hold(Hold::Unlocked);
        }
        let key = match self.lock_key(job, pass.firing()) {
            Ok(key) => key,
            Err(error) => {
                // Names are checked when the file is loaded, so this is our fault. The row still guards.
                error!(job = %spec.name, %error, "no lock key can be made; going by the ledger alone");
                return Taken::Hold(Hold::LedgerOnly);
            }
        };
        let subject = pass.subject();
        let first = pass.ticket.is_first_from_schedule();
        let token = Token::new(self.instance.as_str(), &subject, Uuid::new_v4());
        let mut request = AcquireRequest::new(key, token, spec.budget.ttl);
        request.unless_done = first.then(|| subject.clone());
        let terms = Terms::new(spec.budget.max_renewals, spec.budget.kill_grace);
        match self.locks.acquire(request, terms).await {
            Ok(Acquisition::Acquired(guard)) => {
                telemetry::lock_acquire(&spec.name, LockAnswer::Acquired);
                let subject = first.then_some(subject);
                Taken::Hold(Hold::Locked { guard, subject, counted: Renewals::default(), is_lost: false })
            }
            Ok(Acquisition::Held { holder, remaining }) => {
                telemetry::lock_acquire(&spec.name, LockAnswer::Held);
                debug!(job = %spec.name, %subject, holder = holder.instance, held_for = holder.subject, "lock held");
                if remaining.is_none() && !std::mem::replace(&mut pass.told_of_endless_key, true) {
                    // Our keys always expire. This one would stop the job until somebody deletes it.
                    let key = self.lock_key(job, pass.firing()).map(|key| key.lock()).unwrap_or_default();
                    warn!(job = %spec.name, key, value = holder.instance, "a key without an expiry holds the lock and is not ours; the job waits until you delete it");
                }
                if first && holder.subject == subject { Taken::Elsewhere } else { Taken::Busy }
            }
            Ok(Acquisition::Done) => {
                telemetry::lock_acquire(&spec.name, LockAnswer::Done);
                Taken::Elsewhere
            }
            Ok(unknown) => {
                // An answer that this program does not know is no lock, and no skip either.
                error!(job = %spec.name, %subject, ?unknown, "unknown answer of the lock; asking the ledger");
                Taken::Busy
            }
            Err(error) => {
                telemetry::lock_acquire(&spec.name, LockAnswer::Unavailable);
                let error = &error as &dyn std::error::Error;
                match spec.on_unavailable {
                    OnUnavailable::LedgerOnly => {
                        warn!(job = %spec.name, %subject, error, "degraded: no lock, going by the ledger alone");
                        Taken::Hold(Hold::LedgerOnly)
                    }
                    OnUnavailable::Skip => {
                        warn!(job = %spec.name, %subject, error, "degraded: no lock, and the job does not run without one");
                        Taken::Unreachable
                    }
                }
            }
        }
    }

    fn lock_key(&self, job: &BoundJob, firing: &Firing) -> Result<LockKey, InvalidKey> {
        let mut key = LockKey::new(KEY_PREFIX, &self.namespace, job.spec.name.as_str())?;
        if job.spec.shards > 1 {
            key = key.shard(firing.shard);
        }
        if !job.spec.overlap.is_exclusive() {
            key = key.at(firing.scheduled_at.timestamp_millis());
        }
        Ok(key)
    }
}

impl Hold {
    /// The next loss of the lock. Never returns where there is no lock.
    ///
    /// # Cancel safety
    /// Safe to drop and call again.
    pub(super) async fn lost(&mut self) -> Loss {
        match self {
            Self::Locked { guard, counted, is_lost, .. } => loop {
                let renewal = guard.lease().ttl() / 3;
                tokio::select! {
                    biased;
                    loss = guard.lost() => {
                        *is_lost = loss == Loss::NotMine;
                        return loss;
                    }
                    // So that a run of hours shows its renewals before it ends.
                    () = tokio::time::sleep(renewal) => counted.count(&guard.report()),
                }
            },
            Self::LedgerOnly | Self::Unlocked => std::future::pending().await,
        }
    }

    /// Tries once to take a lost lock again.
    ///
    /// # Cancel safety
    /// If it is dropped, the lock is not ours.
    pub(super) async fn retake(&mut self, locks: &Locks) -> Retaken {
        let Self::Locked { guard, subject, is_lost, .. } = self else { return Retaken::Never };
        match locks.retake(guard, subject.clone()).await {
            Ok(Some(Acquisition::Acquired(again))) => {
                *guard = again;
                *is_lost = false;
                Retaken::Ours
            }
            // It is done, or no renewal is left.
            Ok(Some(Acquisition::Done) | None) => Retaken::Never,
            Ok(Some(_)) => Retaken::NotNow,
            Err(error) => {
                debug!(error = &error as &dyn std::error::Error, "the lock could not be taken again");
                Retaken::NotNow
            }
        }
    }

    /// Gives the lock back. If `step` is the end of a first attempt, the done marker is left in its place, so that
    /// a late replica need not ask the ledger.
    pub(super) async fn release(self, job: &BoundJob, step: Option<&Step>) {
        let Self::Locked { guard, subject, mut counted, is_lost } = self else { return };
        if is_lost {
            let report = guard.report();
            counted.count(&report);
            telemetry::lock_released(&job.spec.name, &report);
            return;
        }
        let token = guard.token().clone();
        let done = subject
            .filter(|_| step.is_some_and(is_done))
            .map(|subject| DoneMark::new(subject, marker_life(job)));
        let release = guard.release(done).await;
        counted.count(&release.report);
        telemetry::lock_released(&job.spec.name, &release.report);
        match release.outcome {
            Ok(ReleaseOutcome::Released) => {}
            Ok(ReleaseOutcome::NotMine) => telemetry::lock_release_mismatch(&job.spec.name),
            Err(error) => {
                let error = &error as &dyn std::error::Error;
                warn!(job = %job.spec.name, %token, error, "could not release the lock; it will expire");
            }
        }
    }
}

fn is_done(step: &Step) -> bool {
    match step {
        Step::Over(Fate::Ran { verdict, settled: Some(_), .. }) => verdict.ending.is_terminal(),
        Step::Over(Fate::Skipped(_)) => true,
        Step::Over(
            Fate::Ran { settled: None, .. }
            | Fate::Elsewhere
            | Fate::Waiting
            | Fate::LetGo
            | Fate::Refused
            | Fate::Drained,
        )
        | Step::Again(_) => false,
    }
}

/// Long enough for a replica whose clock is a little behind.
fn marker_life(job: &BoundJob) -> Duration {
    job.spec.budget.ttl.min(Duration::from_secs(60))
}
