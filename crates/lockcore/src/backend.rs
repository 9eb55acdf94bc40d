//! What a lock server must be able to do: three operations, each of them atomic.

use std::fmt::Debug;
use std::time::Duration;

use crate::{Holder, LockError, LockKey, Token};

pub use futures_util::future::BoxFuture;

/// A server that keeps locks. Each method is one round trip and one atomic step on the server.
///
/// All three methods are safe to repeat with the same token. A caller that got no answer repeats the call
/// to learn the outcome.
///
/// # Cancel safety
/// If a future is dropped, the outcome is unknown. Repeat the call with the same token, or release the
/// token.
pub trait LockBackend: Debug + Send + Sync + 'static {
    /// Takes the lock and sets its expiry, or says who holds it.
    ///
    /// If the lock carries this very token already, the answer is `Acquired` again and the expiry does not
    /// change: the holder counts its trust from the first send.
    fn acquire<'a>(&'a self, request: &'a AcquireRequest)
    -> BoxFuture<'a, Result<AcquireOutcome, LockError>>;

    /// Sets the expiry back to the full `ttl`, if the lock still carries `token`.
    fn renew<'a>(
        &'a self,
        key: &'a LockKey,
        token: &'a Token,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<RenewOutcome, LockError>>;

    /// Deletes the lock, if it still carries `token`, and sets the done marker if `done` is given.
    fn release<'a>(
        &'a self,
        key: &'a LockKey,
        token: &'a Token,
        done: Option<&'a DoneMark>,
    ) -> BoxFuture<'a, Result<ReleaseOutcome, LockError>>;
}

/// Which lock to take, and for whom.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AcquireRequest {
    /// Which lock.
    pub key: LockKey,
    /// The proof that the lock is ours.
    pub token: Token,
    /// How long the lock lives without a renewal.
    pub ttl: Duration,
    /// If the done marker names this subject, the answer is [`AcquireOutcome::Done`]. `None`: the marker
    /// is not read.
    pub unless_done: Option<String>,
}

impl AcquireRequest {
    /// A request that does not read the done marker.
    #[must_use]
    pub const fn new(key: LockKey, token: Token, ttl: Duration) -> Self {
        Self { key, token, ttl, unless_done: None }
    }
}

/// The answer to one acquisition. "Someone else has it" is an answer, not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquireOutcome {
    /// The lock is ours.
    Acquired,
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

/// The answer to a renewal. Every answer but `Renewed` would mean "stop", so there are these two only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewOutcome {
    /// The expiry is back at the full ttl.
    Renewed,
    /// The lock is gone, or someone else has it: stop the work at once.
    NotMine,
}

/// The answer to a release: the lock was ours or it was not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// The lock was ours, and is deleted.
    Released,
    /// The lock was not ours any more: the work took longer than the lease, or the server lost the key.
    NotMine,
}

/// A marker that a release leaves behind: this work is done. Whoever comes late then need not repeat it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DoneMark {
    /// The work that is done.
    pub subject: String,
    /// How long the marker lives.
    pub ttl: Duration,
}

impl DoneMark {
    /// Says for the time `ttl` that `subject` is done.
    #[must_use]
    pub fn new(subject: impl Into<String>, ttl: Duration) -> Self {
        Self { subject: subject.into(), ttl }
    }
}
