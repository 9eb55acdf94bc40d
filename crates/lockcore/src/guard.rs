//! A lock that we hold: renewed while the guard lives, released by compare and delete.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::boot::sleep_until;
use crate::keepalive::{KeepAlive, Shared};
use crate::tools::Tools;
use crate::{Backoff, DoneMark, Lease, LockError, LockKey, Loss, ReleaseOutcome, Token};

/// How often a release is tried before the lock is left to expire.
const RELEASE_TRIES: u32 = 3;

/// What became of a lease, for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeaseReport {
    /// Renewals that the server acknowledged.
    pub renewals_ok: u32,
    /// Renewals without a usable answer.
    pub renewals_failed: u32,
    /// Time since the acquisition was first sent.
    pub held_for: Duration,
    /// Whether the lock reached its renewal cap.
    pub cap_reached: bool,
}

/// How a release ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct Release {
    /// What the server said. After an error the lock expires by itself.
    pub outcome: Result<ReleaseOutcome, LockError>,
    /// What became of the lease until then.
    pub report: LeaseReport,
}

/// A lock that we hold. A task in the background renews it after each third of its ttl.
///
/// If the guard is dropped, the renewals stop and the lock expires after its ttl.
/// [`release`](Self::release) frees the lock at once.
#[derive(Debug)]
#[must_use = "if the guard is dropped, nobody can take the lock until its ttl is over"]
pub struct LeaseGuard {
    shared: Arc<Shared>,
    tools: Tools,
    keepalive: JoinHandle<()>,
    losses: mpsc::UnboundedReceiver<Loss>,
    /// Whether the last loss was final: no other will come.
    ended: bool,
}

impl LeaseGuard {
    pub(crate) fn new(tools: Tools, key: LockKey, token: Token, lease: Lease, notice: Duration) -> Self {
        let shared = Arc::new(Shared::new(key, token, lease));
        let (sender, losses) = mpsc::unbounded_channel();
        let keepalive =
            KeepAlive { shared: Arc::clone(&shared), tools: tools.clone(), notice, losses: sender };
        let keepalive = tools.renewals.spawn(keepalive.run());
        Self { shared, tools, keepalive, losses, ended: false }
    }

    /// The proof that the lock is ours.
    #[must_use]
    pub fn token(&self) -> &Token {
        &self.shared.token
    }

    /// The lease as of the last acknowledged renewal.
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.shared.state().lease
    }

    /// Waits for the next loss.
    ///
    /// [`Loss::NotMine`] and [`Loss::Cap`] are final: after them this waits for ever. After
    /// [`Loss::Unreachable`] the renewals go on. If the server answers again and the lock is still ours, it
    /// can be trusted again; no value says so, but [`lease`](Self::lease) shows it. Otherwise the next loss
    /// is `NotMine`, `Cap`, or `Unreachable` again.
    ///
    /// # Cancel safety
    /// Cancel safe: no loss is missed.
    pub async fn lost(&mut self) -> Loss {
        if self.ended {
            return pending().await;
        }
        // `None`: the runtime of the keep-alive is gone. Nobody renews, so nobody knows.
        let loss = self.losses.recv().await;
        self.ended = !matches!(loss, Some(Loss::Unreachable));
        loss.unwrap_or(Loss::Unreachable)
    }

    /// What became of the lease so far.
    #[must_use]
    pub fn report(&self) -> LeaseReport {
        let state = *self.shared.state();
        LeaseReport {
            renewals_ok: state.lease.renewals(),
            renewals_failed: state.renewals_failed,
            held_for: self.tools.clock.boot_now().saturating_since(state.lease.granted_at()),
            cap_reached: state.cap_reached,
        }
    }

    /// Stops the renewals, deletes the lock if it is still ours, and then sets the done marker if `done`
    /// is given.
    ///
    /// If the server does not answer, the release is tried three times within a short time. After that, or
    /// once the lease has ended, the lock is left to expire.
    ///
    /// # Cancel safety
    /// If dropped midway, the renewals have stopped, and the lock is released or expires by itself.
    pub async fn release(self, done: Option<DoneMark>) -> Release {
        self.keepalive.abort();
        let lease = self.lease();
        let backoff = Backoff::new(Duration::from_millis(10), lease.ttl() / 20);
        let mut tries = 0;
        let outcome = loop {
            let outcome = self.try_release(done.as_ref()).await;
            tries += 1;
            let trusted = self.tools.clock.boot_now() < lease.trusted_until();
            match outcome {
                // An earlier try deleted the lock, and its reply was lost.
                Ok(ReleaseOutcome::NotMine) if tries > 1 && trusted => break Ok(ReleaseOutcome::Released),
                Err(_) if tries < RELEASE_TRIES && trusted => {
                    let pause = backoff.delay(tries - 1, self.tools.jitter.draw());
                    sleep_until(&*self.tools.clock, self.tools.clock.boot_now() + pause).await;
                }
                outcome => break outcome,
            }
        };
        let report = self.report();
        if let Ok(ReleaseOutcome::NotMine) = outcome {
            let Shared { key, token, .. } = &*self.shared;
            let held_ms = u64::try_from(report.held_for.as_millis()).unwrap_or(u64::MAX);
            tracing::warn!(%key, %token, held_ms, "lock was no longer ours when it was released");
        }
        Release { outcome, report }
    }

    async fn try_release(&self, done: Option<&DoneMark>) -> Result<ReleaseOutcome, LockError> {
        let give_up = self.tools.clock.boot_now() + self.lease().ttl() / 3;
        tokio::select! {
            biased;
            outcome = self.tools.backend.release(&self.shared.key, &self.shared.token, done) => outcome,
            () = sleep_until(&*self.tools.clock, give_up) => {
                Err(LockError::unavailable("release", "no answer within a third of the ttl"))
            }
        }
    }
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        self.keepalive.abort();
    }
}
