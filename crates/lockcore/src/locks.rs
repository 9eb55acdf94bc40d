//! Taking a lock: one try or a bounded wait. A token whose outcome stayed unknown is released afterwards.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::boot::sleep_until;
use crate::tools::Tools;
use crate::{
    AcquireOutcome, AcquireRequest, Backoff, BootClock, BootInstant, Holder, Jitter, Lease, LeaseGuard,
    LockBackend, LockError,
};

/// The locks of one backend. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Locks {
    tools: Tools,
    /// Releases of tokens that may have taken a lock although we got no answer.
    cleanups: Arc<Mutex<JoinSet<()>>>,
}

/// How long to wait for a lock, and how long to keep it.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Terms {
    /// How long to wait while the lock is held or its server does not answer. Zero: one try, and a second
    /// one if the outcome of the first is unknown.
    pub max_wait: Duration,
    /// How often the lock is renewed: with the ttl T it lives for T + `max_renewals`·T/3 at most.
    pub max_renewals: u32,
    /// How long before the end of trust [`Loss::Unreachable`](crate::Loss::Unreachable) and
    /// [`Loss::Cap`](crate::Loss::Cap) are reported, so that the work can stop while the lock is still
    /// held. At most a third of the ttl; a longer time counts as a third.
    pub notice: Duration,
}

impl Terms {
    /// Terms that do not wait.
    #[must_use]
    pub const fn new(max_renewals: u32, notice: Duration) -> Self {
        Self { max_wait: Duration::ZERO, max_renewals, notice }
    }

    /// The same terms with a bounded wait.
    #[must_use]
    pub const fn max_wait(self, max_wait: Duration) -> Self {
        Self { max_wait, ..self }
    }
}

/// What an acquisition came to. "Someone else has it" is an answer, not an error.
#[derive(Debug)]
#[must_use = "if the guard is dropped, nobody can take the lock until its ttl is over"]
#[non_exhaustive]
pub enum Acquisition {
    /// The lock is ours, as long as the guard lives and reports no [loss](LeaseGuard::lost).
    Acquired(LeaseGuard),
    /// Someone else has it.
    Held {
        /// Who has it, and for what.
        holder: Holder,
        /// How long the lock lives if nobody renews it. `None` if it has no expiry: only a key that
        /// somebody set by hand has none.
        remaining: Option<Duration>,
    },
    /// The done marker names the subject of the request. A hint, not a proof.
    Done,
}

impl Locks {
    /// The locks of `backend`, with leases judged by `clock`.
    ///
    /// `renewals` is the runtime that renews them. It needs time enabled, and no other work may block its
    /// threads.
    #[must_use]
    pub fn new(backend: Arc<dyn LockBackend>, clock: Arc<dyn BootClock>, renewals: Handle) -> Self {
        let tools = Tools { backend, clock, renewals, jitter: Arc::default() };
        Self { tools, cleanups: Arc::default() }
    }

    /// The same locks with the random part of their waits from `jitter`.
    #[must_use]
    pub fn with_jitter(self, jitter: Arc<Jitter>) -> Self {
        Self { tools: Tools { jitter, ..self.tools }, ..self }
    }

    /// Takes a lock. Waits for at most `terms.max_wait`, with exponential backoff and full jitter.
    ///
    /// A try without an answer is repeated with the same token; trust then counts from the first send of
    /// that token. Once the first send is so old that a lock by it would not be trusted any more, the wait
    /// goes on with a new token of the same instance and subject: see [`LeaseGuard::token`].
    ///
    /// Give each call a token of its own: a token of an earlier call that got no answer may be released in
    /// the background at any moment.
    ///
    /// Call it on a Tokio runtime with time enabled.
    ///
    /// # Errors
    /// [`LockError::Unavailable`] when the last try got no usable answer, or got it so late that the lease
    /// had ended.
    ///
    /// # Cancel safety
    /// May be dropped at any time. If its token may have taken the lock by then, a task on the runtime of
    /// the renewals tries for at most one ttl to release it.
    pub async fn acquire(&self, request: AcquireRequest, terms: Terms) -> Result<Acquisition, LockError> {
        let clock = &*self.tools.clock;
        let give_up = clock.boot_now() + terms.max_wait;
        let backoff = Backoff::new(Duration::from_millis(20), (request.ttl / 4).min(Duration::from_secs(1)));
        let mut asking = Asking::new(self, request);
        let mut unknown_in_a_row = 0;
        let mut tries = 0;
        loop {
            asking.replace_token_if_stale();
            let outcome = asking.send().await;
            unknown_in_a_row = if outcome.is_err() { unknown_in_a_row + 1 } else { 0 };
            let no = match outcome {
                Ok((AcquireOutcome::Acquired, since)) => {
                    return Ok(Acquisition::Acquired(asking.into_guard(since, terms)));
                }
                Ok((AcquireOutcome::Done, _)) => return Ok(Acquisition::Done),
                Ok((AcquireOutcome::Held { holder, remaining }, _)) => {
                    Ok(Acquisition::Held { holder, remaining })
                }
                Err(error) => Err(error),
            };
            let now = clock.boot_now();
            // After one unknown outcome there is a second try, even when the time to wait is over.
            let ask_again = unknown_in_a_row == 1 && !asking.is_stale(now);
            if now >= give_up && !ask_again {
                return no;
            }
            let until = if ask_again {
                now + backoff.delay(0, self.tools.jitter.draw())
            } else {
                give_up.min(now + backoff.delay(tries, self.tools.jitter.draw()))
            };
            sleep_until(clock, until).await;
            tries += 1;
        }
    }

    /// Releases the token of `request` in the background: tries until the server answers, for at most one
    /// ttl.
    fn release_in_background(&self, request: AcquireRequest) {
        let AcquireRequest { key, token, ttl, .. } = request;
        let Tools { backend, clock, jitter, .. } = self.tools.clone();
        let release = async move {
            let expired = clock.boot_now() + ttl;
            let backoff = Backoff::new(Duration::from_millis(50), (ttl / 4).min(Duration::from_secs(2)));
            let until_released = async {
                let mut tries = 0;
                while let Err(error) = backend.release(&key, &token, None).await {
                    tracing::debug!(%key, %token, %error, "could not yet release a lock that may be ours");
                    sleep_until(&*clock, clock.boot_now() + backoff.delay(tries, jitter.draw())).await;
                    tries += 1;
                }
            };
            tokio::select! {
                biased;
                () = until_released => {}
                () = sleep_until(&*clock, expired) => {}
            }
        };
        let mut cleanups = self.cleanups.lock().unwrap_or_else(PoisonError::into_inner);
        while cleanups.try_join_next().is_some() {}
        cleanups.spawn_on(release, &self.tools.renewals);
    }
}

/// One acquisition under way. If it ends without a guard although its token may have taken the lock, the
/// token is released in the background.
struct Asking<'a> {
    locks: &'a Locks,
    request: AcquireRequest,
    /// The instant before the first send of this token that may have taken the lock.
    unknown_since: Option<BootInstant>,
}

impl<'a> Asking<'a> {
    fn new(locks: &'a Locks, request: AcquireRequest) -> Self {
        Self { locks, request, unknown_since: None }
    }

    /// Sends the token once. Gives the answer and the instant from which trust counts. Answers `Acquired`
    /// only while the lease can be trusted.
    async fn send(&mut self) -> Result<(AcquireOutcome, BootInstant), LockError> {
        let clock = &*self.locks.tools.clock;
        let earlier = self.unknown_since;
        // Set before the send, because this future may be dropped at the next await.
        let since = *self.unknown_since.get_or_insert_with(|| clock.boot_now());
        let useless_from = Lease::granted(since, self.request.ttl, 0).trusted_until();
        let outcome = tokio::select! {
            biased;
            () = sleep_until(clock, useless_from) => Err(too_late()),
            outcome = self.locks.tools.backend.acquire(&self.request) => outcome,
        }?;
        match outcome {
            // After a suspend the timer may be up to a second late; the clock is not.
            AcquireOutcome::Acquired if clock.boot_now() >= useless_from => Err(too_late()),
            AcquireOutcome::Acquired => Ok((outcome, since)),
            // This send took no lock. An earlier one without an answer may have, or still may.
            AcquireOutcome::Held { .. } | AcquireOutcome::Done => {
                self.unknown_since = earlier;
                Ok((outcome, since))
            }
        }
    }

    /// Whether a lock that an earlier send took could not be trusted any more.
    fn is_stale(&self, now: BootInstant) -> bool {
        self.unknown_since
            .is_some_and(|since| now >= Lease::granted(since, self.request.ttl, 0).trusted_until())
    }

    fn replace_token_if_stale(&mut self) {
        if self.is_stale(self.locks.tools.clock.boot_now()) {
            self.clean_up();
            self.request.token = self.request.token.reissued(Uuid::new_v4());
        }
    }

    fn into_guard(mut self, since: BootInstant, terms: Terms) -> LeaseGuard {
        self.unknown_since = None;
        let lease = Lease::granted(since, self.request.ttl, terms.max_renewals);
        let (key, token) = (self.request.key.clone(), self.request.token.clone());
        LeaseGuard::new(self.locks.tools.clone(), key, token, lease, terms.notice)
    }

    fn clean_up(&mut self) {
        if self.unknown_since.take().is_some() {
            self.locks.release_in_background(self.request.clone());
        }
    }
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.clean_up();
    }
}

fn too_late() -> LockError {
    LockError::unavailable("acquire", "no answer before the lease would have ended")
}
