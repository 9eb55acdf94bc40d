//! The keep-alive: renews a lease until its cap, and tells when it can no longer be believed.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::boot::sleep_until;
use crate::{
    Backoff, BootClock, BootInstant, Jitter, Lease, LockBackend, LockError, LockKey, Loss, RenewOutcome,
    Token,
};

/// What the keep-alive and its guard both see.
#[derive(Debug)]
pub(crate) struct Hold {
    pub(crate) key: LockKey,
    pub(crate) token: Token,
    state: Mutex<State>,
}

/// The lease as it stands, and what it took to keep it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) lease: Lease,
    pub(crate) renewals_failed: u32,
    pub(crate) cap_reached: bool,
}

impl Hold {
    pub(crate) fn new(key: LockKey, token: Token, lease: Lease) -> Self {
        let state = Mutex::new(State { lease, renewals_failed: 0, cap_reached: false });
        Self { key, token, state }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task that keeps one lease alive.
pub(crate) struct Keeper {
    pub(crate) hold: Arc<Hold>,
    pub(crate) backend: Arc<dyn LockBackend>,
    pub(crate) clock: Arc<dyn BootClock>,
    pub(crate) jitter: Arc<Jitter>,
    pub(crate) notice: Duration,
    pub(crate) losses: mpsc::UnboundedSender<Loss>,
}

impl Keeper {
    /// Renews until there is nothing left to renew. Ends after `NotMine` and `Cap`; `Unreachable` is
    /// told once for each time that trust runs out, and the renewing goes on, because a server that
    /// comes back can still say whose the lock is.
    pub(crate) async fn run(self) {
        let ttl = self.hold.state().lease.ttl();
        let backoff = Backoff::new((ttl / 60).max(Duration::from_millis(10)), ttl / 6);
        let mut failures = 0;
        let mut retry_at = None;
        let mut unreachable = false;
        loop {
            let lease = self.hold.state().lease;
            let warn_at = self.warn_at(&lease);
            let Some(due) = lease.renewal_due() else {
                sleep_until(&*self.clock, warn_at).await;
                return self.tell_cap();
            };
            let due = retry_at.unwrap_or(due);
            let wake_at = if unreachable { due } else { due.min(warn_at) };
            sleep_until(&*self.clock, wake_at).await;

            // First of all what the clock says: after a suspend or a SIGSTOP this is how the work
            // learns that it has no lock any more, before anyone asks a server that may not answer.
            let now = self.clock.boot_now();
            if now >= warn_at && !unreachable {
                unreachable = true;
                self.tell(Loss::Unreachable);
            }
            if now < due {
                continue;
            }
            let Some(ttl) = lease.renewal_ttl(now) else { return self.tell_cap() };
            match self.renew(ttl, now + lease.ttl() / 3, warn_at, &mut unreachable).await {
                Ok(RenewOutcome::Renewed) => {
                    let renewed = lease.renewed(now);
                    self.hold.state().lease = renewed;
                    (failures, retry_at) = (0, None);
                    // A reply that was itself held up does not bring trust back.
                    unreachable = unreachable && self.clock.boot_now() >= self.warn_at(&renewed);
                }
                Ok(RenewOutcome::NotMine) => return self.tell(Loss::NotMine),
                Err(error) => {
                    let Hold { key, token, .. } = &*self.hold;
                    tracing::debug!(%key, %token, %error, "renewal failed");
                    self.hold.state().renewals_failed += 1;
                    retry_at = Some(self.clock.boot_now() + backoff.delay(failures, self.jitter.draw()));
                    failures = failures.saturating_add(1);
                }
            }
        }
    }

    /// One renewal, which is given up at `give_up`. If trust runs out meanwhile, that is told at once
    /// and not when the server has made up its mind.
    async fn renew(
        &self,
        ttl: Duration,
        give_up: BootInstant,
        warn_at: BootInstant,
        unreachable: &mut bool,
    ) -> Result<RenewOutcome, LockError> {
        let mut renewal = self.backend.renew(&self.hold.key, &self.hold.token, ttl);
        loop {
            tokio::select! {
                biased;
                () = sleep_until(&*self.clock, warn_at), if !*unreachable => {
                    *unreachable = true;
                    self.tell(Loss::Unreachable);
                }
                outcome = &mut renewal => return outcome,
                () = sleep_until(&*self.clock, give_up) => {
                    return Err(LockError::unavailable("renew", "no answer within a third of the ttl"));
                }
            }
        }
    }

    /// When the work must hear that the lease ends, so that it is gone when the lease is.
    fn warn_at(&self, lease: &Lease) -> BootInstant {
        lease.trusted_until().saturating_sub(self.notice.min(lease.ttl() / 3))
    }

    fn tell_cap(&self) {
        let Hold { key, token, .. } = &*self.hold;
        let renewals = {
            let mut state = self.hold.state();
            state.cap_reached = true;
            state.lease.renewals()
        };
        tracing::warn!(%key, %token, renewals, "lock reached its renewal cap and runs out");
        self.tell(Loss::Cap);
    }

    fn tell(&self, loss: Loss) {
        // Fails only when the guard is gone, and with it everyone who wanted to know.
        self.losses.send(loss).ok();
    }
}
