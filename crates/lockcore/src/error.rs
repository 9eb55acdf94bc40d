//! What it means when a lock operation fails: we do not know what happened.

use std::error::Error;

/// The lock's server gave no usable answer.
///
/// "Someone else has it" is never an error: see [`crate::AcquireOutcome`]. After an error the
/// operation may have taken effect or not; the token tells, on the next attempt.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// No answer in time, a broken connection, or a server that refuses to serve.
    #[error("could not {doing} the lock")]
    Unavailable {
        /// What we were doing: `acquire`, `renew` or `release`.
        doing: &'static str,
        /// What the client reported.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl LockError {
    /// `doing` failed because of `source`.
    pub fn unavailable(doing: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable { doing, source: source.into() }
    }
}
