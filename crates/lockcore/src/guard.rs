//! A held lock: kept alive while the guard lives, released by compare and delete.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::boot::sleep_until;
use crate::keeper::{Hold, Keeper};
use crate::{
    Backoff, BootClock, DoneMark, Jitter, Lease, LockBackend, LockError, LockKey, Locks, ReleaseOutcome,
    Token,
};

/// Tries of a release before the ttl is left to do it.
const RELEASE_TRIES: u32 = 3;

/// Why a lock can no longer be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Loss {
    /// The server says that the lock is gone or someone else's: stop the work at once.
    NotMine,
    /// It has been renewed as often as it may be. It runs out by itself.
    Cap,
    /// No renewal was acknowledged in time, so nobody knows whether it is still ours.
    Unreachable,
}

/// What became of a lease, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseReport {
    /// Renewals that the server acknowledged.
    pub renewals_ok: u32,
    /// Renewals that brought no usable answer.
    pub renewals_failed: u32,
    /// Time since the acquisition was first sent.
    pub held_for: Duration,
    /// Whether the lock ran into its renewal cap.
    pub cap_reached: bool,
}

/// The end of a lease.
#[derive(Debug)]
#[non_exhaustive]
pub struct Release {
    /// What the server said. After an error the lock runs out by itself.
    pub outcome: Result<ReleaseOutcome, LockError>,
    /// What became of the lease until then.
    pub report: LeaseReport,
}

/// A lock that is ours, renewed in the background at each third of its ttl.
///
/// Dropping the guard stops the renewals and leaves the lock to its ttl; [`release`](Self::release)
/// frees it at once.
#[derive(Debug)]
#[must_use = "a lock that is dropped stands idle until its ttl is over"]
pub struct LeaseGuard {
    hold: Arc<Hold>,
    backend: Arc<dyn LockBackend>,
    clock: Arc<dyn BootClock>,
    jitter: Arc<Jitter>,
    keeper: JoinHandle<()>,
    losses: mpsc::UnboundedReceiver<Loss>,
    /// Nothing more will be told.
    told_all: bool,
}

impl LeaseGuard {
    pub(crate) fn new(locks: &Locks, key: LockKey, token: Token, lease: Lease, notice: Duration) -> Self {
        let Locks { backend, clock, keepalive, jitter, .. } = locks;
        let hold = Arc::new(Hold::new(key, token, lease));
        let (tell, losses) = mpsc::unbounded_channel();
        let keeper = Keeper {
            hold: Arc::clone(&hold),
            backend: Arc::clone(backend),
            clock: Arc::clone(clock),
            jitter: Arc::clone(jitter),
            notice,
            losses: tell,
        };
        let keeper = keepalive.spawn(keeper.run());
        let (backend, clock, jitter) = (Arc::clone(backend), Arc::clone(clock), Arc::clone(jitter));
        Self { hold, backend, clock, jitter, keeper, losses, told_all: false }
    }

    /// The proof that the lock is ours.
    #[must_use]
    pub fn token(&self) -> &Token {
        &self.hold.token
    }

    /// The lease as the last acknowledged renewal left it.
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.hold.state().lease
    }

    /// Waits for the next loss.
    ///
    /// [`Loss::NotMine`] and [`Loss::Cap`] are the last word; afterwards this waits for ever. After
    /// [`Loss::Unreachable`] the renewals go on: if the server comes back and the lock is still ours,
    /// trust returns silently ([`lease`](Self::lease) shows it), and otherwise one of the others, or
    /// `Unreachable` again, is told.
    ///
    /// # Cancel safety
    /// Cancel safe: no loss is missed.
    pub async fn lost(&mut self) -> Loss {
        if self.told_all {
            return pending().await;
        }
        // No keep-alive, because its runtime is gone: nobody renews, so nobody knows.
        let loss = self.losses.recv().await;
        self.told_all = !matches!(loss, Some(Loss::Unreachable));
        loss.unwrap_or(Loss::Unreachable)
    }

    /// How the lease has fared so far.
    #[must_use]
    pub fn report(&self) -> LeaseReport {
        let state = *self.hold.state();
        LeaseReport {
            renewals_ok: state.lease.renewals(),
            renewals_failed: state.renewals_failed,
            held_for: self.clock.boot_now().saturating_since(state.lease.granted_at()),
            cap_reached: state.cap_reached,
        }
    }

    /// Stops the renewals, then deletes the lock if it is still ours and leaves `done` behind.
    ///
    /// An unreachable server is tried three times in short order; after that, and when the lease has run
    /// out anyway, it is left to the ttl.
    ///
    /// # Cancel safety
    /// If dropped midway the renewals have stopped, and the lock is released or runs out by itself.
    pub async fn release(self, done: Option<DoneMark>) -> Release {
        self.keeper.abort();
        let lease = self.lease();
        let backoff = Backoff::new(Duration::from_millis(10), lease.ttl() / 20);
        let mut attempt = 0;
        let outcome = loop {
            let outcome = self.try_release(done.as_ref()).await;
            attempt += 1;
            let trusted = self.clock.boot_now() < lease.trusted_until();
            match outcome {
                // The server did it at an earlier try, whose reply was lost.
                Ok(ReleaseOutcome::NotMine) if attempt > 1 && trusted => break Ok(ReleaseOutcome::Released),
                Err(_) if attempt < RELEASE_TRIES && trusted => {
                    let pause = backoff.delay(attempt - 1, self.jitter.draw());
                    sleep_until(&*self.clock, self.clock.boot_now() + pause).await;
                }
                outcome => break outcome,
            }
        };
        let report = self.report();
        if let Ok(ReleaseOutcome::NotMine) = outcome {
            let Hold { key, token, .. } = &*self.hold;
            let held_ms = u64::try_from(report.held_for.as_millis()).unwrap_or(u64::MAX);
            tracing::warn!(%key, %token, held_ms, "lock was no longer ours at its release");
        }
        Release { outcome, report }
    }

    async fn try_release(&self, done: Option<&DoneMark>) -> Result<ReleaseOutcome, LockError> {
        let give_up = self.clock.boot_now() + self.lease().ttl() / 3;
        tokio::select! {
            biased;
            outcome = self.backend.release(&self.hold.key, &self.hold.token, done) => outcome,
            () = sleep_until(&*self.clock, give_up) => {
                Err(LockError::unavailable("release", "no answer within a third of the ttl"))
            }
        }
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}
