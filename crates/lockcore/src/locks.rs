//! Taking a lock: one try or a bounded wait, and never a doubt left behind.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::boot::sleep_until;
use crate::{
    AcquireOutcome, AcquireRequest, Backoff, BootClock, BootInstant, Holder, Jitter, Lease, LeaseGuard,
    LockBackend, LockError, LockKey, Token,
};

/// Locks on one backend, kept alive on one runtime. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Locks {
    pub(crate) backend: Arc<dyn LockBackend>,
    pub(crate) clock: Arc<dyn BootClock>,
    pub(crate) keepalive: Handle,
    pub(crate) jitter: Arc<Jitter>,
    /// Releases of tokens that may have taken a lock without our learning it.
    strays: Arc<Mutex<JoinSet<()>>>,
}

/// How long to wait for a lock, and how long to keep it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Terms {
    /// How long to wait while the lock is held or its server unreachable. Zero: one try, and one more
    /// if the outcome of the first is unknown.
    pub patience: Duration,
    /// How often the lock is renewed: with ttl T it lives T + `max_renewals`·T/3 at most.
    pub max_renewals: u32,
    /// How long before the end of trust a loss by [`Loss::Unreachable`](crate::Loss::Unreachable) or
    /// [`Loss::Cap`](crate::Loss::Cap) is told, so that the work can end while the lock still stands.
    /// At most a third of the ttl; more is taken as that.
    pub notice: Duration,
}

impl Terms {
    /// Terms without patience.
    #[must_use]
    pub const fn new(max_renewals: u32, notice: Duration) -> Self {
        Self { patience: Duration::ZERO, max_renewals, notice }
    }

    /// The same terms with a bounded wait.
    #[must_use]
    pub const fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }
}

/// The answer to an acquisition. Not getting the lock is an answer, not an error.
#[derive(Debug)]
#[must_use = "a lock that is dropped stands idle until its ttl is over"]
#[non_exhaustive]
pub enum Acquisition {
    /// It is ours, for as long as the guard lives and nothing is [lost](LeaseGuard::lost).
    Acquired(LeaseGuard),
    /// Someone else has it.
    Held {
        /// Who, and for what.
        holder: Holder,
        /// How long the lock lives if nobody renews it. `None` if it has no expiry: only a key that
        /// somebody set by hand has none.
        remaining: Option<Duration>,
    },
    /// The work it would be taken for has been done. A hint, never a proof.
    Done,
}

impl Locks {
    /// Locks on `backend`, with leases judged by `clock`.
    ///
    /// `keepalive` runs the renewals. It needs time enabled, and threads that no work can block.
    #[must_use]
    pub fn new(backend: Arc<dyn LockBackend>, clock: Arc<dyn BootClock>, keepalive: Handle) -> Self {
        Self { backend, clock, keepalive, jitter: Arc::default(), strays: Arc::default() }
    }

    /// The same locks with waits drawn from `jitter`.
    #[must_use]
    pub fn with_jitter(self, jitter: Arc<Jitter>) -> Self {
        Self { jitter, ..self }
    }

    /// Takes a lock, waiting within `terms.patience` with exponential backoff and full jitter.
    ///
    /// A try whose outcome is unknown is repeated with the same token, and trust counts from the first
    /// send of that token. When the first send can no longer be believed the wait goes on with a new
    /// token of the same instance and subject: see [`LeaseGuard::token`].
    ///
    /// Give every call a token of its own: one that was left in doubt by an earlier call may be released
    /// in the background at any moment.
    ///
    /// Call it on a Tokio runtime with time enabled.
    ///
    /// # Errors
    /// [`LockError::Unavailable`] when the last try brought no usable answer, or one so late that the
    /// lease had run out.
    ///
    /// # Cancel safety
    /// May be dropped at any time: a token that may have taken the lock by then is released on the
    /// keep-alive runtime, for at most one ttl.
    pub async fn acquire(&self, request: AcquireRequest, terms: Terms) -> Result<Acquisition, LockError> {
        let clock = &*self.clock;
        let give_up = clock.boot_now() + terms.patience;
        let backoff = Backoff::new(Duration::from_millis(20), (request.ttl / 4).min(Duration::from_secs(1)));
        let mut bid = Bid::new(self, request);
        let mut unknown_in_a_row = 0;
        let mut attempt = 0;
        loop {
            bid.start_over_if_stale();
            let outcome = bid.send().await;
            unknown_in_a_row = if outcome.is_err() { unknown_in_a_row + 1 } else { 0 };
            let no = match outcome {
                Ok(AcquireOutcome::Acquired) => return Ok(Acquisition::Acquired(bid.win(terms))),
                Ok(AcquireOutcome::Done) => return Ok(Acquisition::Done),
                Ok(AcquireOutcome::Held { holder, remaining }) => Ok(Acquisition::Held { holder, remaining }),
                Err(error) => Err(error),
            };
            let now = clock.boot_now();
            // One unknown outcome is looked into even when the patience is over.
            let look_again = unknown_in_a_row == 1 && !bid.is_stale(now);
            if now >= give_up && !look_again {
                return no;
            }
            let until = if look_again {
                now + backoff.delay(0, self.jitter.draw())
            } else {
                give_up.min(now + backoff.delay(attempt, self.jitter.draw()))
            };
            sleep_until(clock, until).await;
            attempt += 1;
        }
    }

    /// Releases a token in the background until the server says that it is gone, for at most its ttl.
    fn release_stray(&self, key: LockKey, token: Token, ttl: Duration) {
        let Self { backend, clock, jitter, .. } = self.clone();
        let release = async move {
            let expired = clock.boot_now() + ttl;
            let backoff = Backoff::new(Duration::from_millis(50), (ttl / 4).min(Duration::from_secs(2)));
            let until_released = async {
                let mut attempt = 0;
                while let Err(error) = backend.release(&key, &token, None).await {
                    tracing::debug!(%key, %token, %error, "stray token not released yet");
                    sleep_until(&*clock, clock.boot_now() + backoff.delay(attempt, jitter.draw())).await;
                    attempt += 1;
                }
            };
            tokio::select! {
                biased;
                () = until_released => {}
                () = sleep_until(&*clock, expired) => {}
            }
        };
        let mut strays = self.strays.lock().unwrap_or_else(PoisonError::into_inner);
        while strays.try_join_next().is_some() {}
        strays.spawn_on(release, &self.keepalive);
    }
}

/// A token on its way to the server, and since when we do not know what it did there.
struct Bid<'a> {
    locks: &'a Locks,
    request: AcquireRequest,
    /// The instant before the first send that may have taken the lock without our learning it.
    doubt: Option<BootInstant>,
}

impl<'a> Bid<'a> {
    fn new(locks: &'a Locks, request: AcquireRequest) -> Self {
        Self { locks, request, doubt: None }
    }

    /// Sends the token once. `Acquired` is only answered while the lease can be believed.
    async fn send(&mut self) -> Result<AcquireOutcome, LockError> {
        let clock = &*self.locks.clock;
        let earlier = self.doubt;
        // In doubt from before the send: this future may be dropped at the next await.
        let since = *self.doubt.get_or_insert_with(|| clock.boot_now());
        let useless_from = Lease::granted(since, self.request.ttl, 0).trusted_until();
        let outcome = tokio::select! {
            biased;
            () = sleep_until(clock, useless_from) => Err(too_late()),
            outcome = self.locks.backend.acquire(&self.request) => outcome,
        }?;
        match outcome {
            // The timer may be up to a second late after a suspend; the clock is not.
            AcquireOutcome::Acquired if clock.boot_now() >= useless_from => Err(too_late()),
            AcquireOutcome::Acquired => Ok(outcome),
            // This send did nothing. What an earlier one did, or may do yet, stays unknown.
            AcquireOutcome::Held { .. } | AcquireOutcome::Done => {
                self.doubt = earlier;
                Ok(outcome)
            }
        }
    }

    /// Whether an answer "yours" to this token could no longer be believed.
    fn is_stale(&self, now: BootInstant) -> bool {
        self.doubt.is_some_and(|since| now >= Lease::granted(since, self.request.ttl, 0).trusted_until())
    }

    fn start_over_if_stale(&mut self) {
        if self.is_stale(self.locks.clock.boot_now()) {
            self.let_go();
            self.request.token = self.request.token.reissued(Uuid::new_v4());
        }
    }

    fn win(mut self, terms: Terms) -> LeaseGuard {
        let since = self.doubt.take().unwrap_or_else(|| self.locks.clock.boot_now());
        let lease = Lease::granted(since, self.request.ttl, terms.max_renewals);
        LeaseGuard::new(self.locks, self.request.key.clone(), self.request.token.clone(), lease, terms.notice)
    }

    fn let_go(&mut self) {
        if self.doubt.take().is_some() {
            let AcquireRequest { key, token, ttl, .. } = self.request.clone();
            self.locks.release_stray(key, token, ttl);
        }
    }
}

impl Drop for Bid<'_> {
    fn drop(&mut self) {
        self.let_go();
    }
}

fn too_late() -> LockError {
    LockError::unavailable("acquire", "no answer before the lease would have run out")
}
