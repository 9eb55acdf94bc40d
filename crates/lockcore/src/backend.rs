//! What a lock server must be able to do, in three steps that are each atomic.

use std::fmt::Debug;
use std::time::Duration;

use crate::{Holder, LockError, LockKey, Token};

pub use futures_util::future::BoxFuture;

/// A server of locks. Every method is one round trip and one atomic step on the server.
///
/// All three are safe to repeat with the same token: that is how a caller resolves an outcome that
/// it did not learn.
///
/// # Cancel safety
/// A dropped future leaves the outcome unknown; repeat the call with the same token, or release it.
pub trait LockBackend: Debug + Send + Sync + 'static {
    /// Takes the lock with its expiry, or says who holds it.
    ///
    /// A lock that already carries this very token is `Acquired` again, with its expiry untouched:
    /// trust still counts from the first send.
    fn acquire<'a>(&'a self, request: &'a AcquireRequest)
    -> BoxFuture<'a, Result<AcquireOutcome, LockError>>;

    /// Sets the expiry back to the full `ttl`, if the lock still carries `token`.
    fn renew<'a>(
        &'a self,
        key: &'a LockKey,
        token: &'a Token,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<RenewOutcome, LockError>>;

    /// Deletes the lock, if it still carries `token`; leaves `done` behind if asked to.
    fn release<'a>(
        &'a self,
        key: &'a LockKey,
        token: &'a Token,
        done: Option<&'a DoneMark>,
    ) -> BoxFuture<'a, Result<ReleaseOutcome, LockError>>;
}

/// What to take, and in whose name.
#[derive(Clone, Debug)]
pub struct AcquireRequest {
    /// Which lock.
    pub key: LockKey,
    /// The proof that it is ours.
    pub token: Token,
    /// How long it lives without renewal.
    pub ttl: Duration,
    /// Answer [`AcquireOutcome::Done`] when the done marker names this subject.
    pub unless_done: Option<String>,
}

/// The answer to an acquisition. Not getting the lock is an answer, not an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquireOutcome {
    /// It is ours.
    Acquired,
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

/// The answer to a renewal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RenewOutcome {
    /// The expiry is back to the full ttl.
    Renewed,
    /// The lock is gone or someone else's: stop the work at once.
    NotMine,
}

/// The answer to a release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseOutcome {
    /// It was ours and is gone.
    Released,
    /// It was no longer ours: the work outlived its lease, or the server lost the key.
    NotMine,
}

/// What a release leaves behind so that late comers need not ask the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoneMark {
    /// The work that is done.
    pub subject: String,
    /// How long the marker lives.
    pub ttl: Duration,
}
