//! The keep-alive: a task that renews one lease up to its cap, and reports when the lock is lost.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::boot::sleep_until;
use crate::tools::Tools;
use crate::{Backoff, BootInstant, Lease, LockError, LockKey, Loss, RenewOutcome, Token};

/// What the keep-alive and its guard share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) key: LockKey,
    pub(crate) token: Token,
    state: Mutex<State>,
}

/// The lease as it is now, and what the renewals came to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) lease: Lease,
    pub(crate) renewals_failed: u32,
    pub(crate) cap_reached: bool,
}

impl Shared {
    pub(crate) fn new(key: LockKey, token: Token, lease: Lease) -> Self {
        let state = Mutex::new(State { lease, renewals_failed: 0, cap_reached: false });
        Self { key, token, state }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that renews one lease.
pub(crate) struct KeepAlive {
    pub(crate) shared: Arc<Shared>,
    pub(crate) tools: Tools,
    pub(crate) notice: Duration,
    pub(crate) losses: mpsc::UnboundedSender<Loss>,
}

impl KeepAlive {
    /// Renews until the cap is reached or the lock is someone else's, reports that, and ends.
    ///
    /// `Unreachable` is reported once each time that trust ends. The renewals go on after it, because a
    /// server that answers again can still say whose lock it is.
    pub(crate) async fn run(self) {
        let ttl = self.shared.state().lease.ttl();
        let backoff = Backoff::new((ttl / 60).max(Duration::from_millis(10)), ttl / 6);
        let mut failures = 0;
        let mut retry_at = None;
        let mut unreachable = false;
        loop {
            let lease = self.shared.state().lease;
            let warn_at = self.warn_at(&lease);
            let Some(due) = lease.renewal_due() else {
                sleep_until(&*self.tools.clock, warn_at).await;
                return self.report_cap();
            };
            let due = retry_at.unwrap_or(due);
            let wake_at = if unreachable { due } else { due.min(warn_at) };
            sleep_until(&*self.tools.clock, wake_at).await;

            // Look at the clock before asking the server, which may not answer: after a suspend or a
            // SIGSTOP this is how the work learns that its lock has expired.
            let now = self.tools.clock.boot_now();
            if now >= warn_at && !unreachable {
                unreachable = true;
                self.report(Loss::Unreachable);
            }
            if now < due {
                continue;
            }
            let Some(ttl) = lease.renewal_ttl(now) else { return self.report_cap() };
            match self.renew(ttl, now + lease.ttl() / 3, warn_at, &mut unreachable).await {
                Ok(RenewOutcome::Renewed) => {
                    let renewed = lease.renewed(now);
                    self.shared.state().lease = renewed;
                    (failures, retry_at) = (0, None);
                    // A reply that arrives after the new lease has ended does not bring trust back.
                    unreachable = unreachable && self.tools.clock.boot_now() >= self.warn_at(&renewed);
                }
                Ok(RenewOutcome::NotMine) => return self.report(Loss::NotMine),
                Err(error) => {
                    let Shared { key, token, .. } = &*self.shared;
                    tracing::debug!(%key, %token, %error, "renewal failed");
                    self.shared.state().renewals_failed += 1;
                    retry_at =
                        Some(self.tools.clock.boot_now() + backoff.delay(failures, self.tools.jitter.draw()));
                    failures = failures.saturating_add(1);
                }
            }
        }
    }

    /// Sends one renewal and waits for the answer until `give_up`. If trust ends meanwhile, this is
    /// reported at once, not when the server answers.
    async fn renew(
        &self,
        ttl: Duration,
        give_up: BootInstant,
        warn_at: BootInstant,
        unreachable: &mut bool,
    ) -> Result<RenewOutcome, LockError> {
        let mut renewal = self.tools.backend.renew(&self.shared.key, &self.shared.token, ttl);
        loop {
            tokio::select! {
                biased;
                () = sleep_until(&*self.tools.clock, warn_at), if !*unreachable => {
                    *unreachable = true;
                    self.report(Loss::Unreachable);
                }
                outcome = &mut renewal => return outcome,
                () = sleep_until(&*self.tools.clock, give_up) => {
                    return Err(LockError::unavailable("renew", "no answer within a third of the ttl"));
                }
            }
        }
    }

    /// When to report that the lease ends, so that the work can stop while the lock is still held.
    fn warn_at(&self, lease: &Lease) -> BootInstant {
        lease.trusted_until().saturating_sub(self.notice.min(lease.ttl() / 3))
    }

    fn report_cap(&self) {
        let Shared { key, token, .. } = &*self.shared;
        let renewals = {
            let mut state = self.shared.state();
            state.cap_reached = true;
            state.lease.renewals()
        };
        tracing::warn!(%key, %token, renewals, "lock reached its renewal cap; it is not renewed any more and will expire");
        self.report(Loss::Cap);
    }

    fn report(&self, loss: Loss) {
        // This fails only if the guard is gone: then nobody waits for the loss.
        self.losses.send(loss).ok();
    }
}
