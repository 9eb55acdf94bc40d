//! What it means when a lock operation fails: we do not know what happened.

use std::error::Error;

/// The lock server gave no usable answer.
///
/// "Someone else has it" is never an error: see [`crate::AcquireOutcome`]. After an error the operation may
/// have taken effect or not. To learn it, repeat the operation with the same token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LockError {
    /// There was no answer in time, the connection broke, or the server refused the request.
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
    /// `doing` (`acquire`, `renew` or `release`) failed because of `source`.
    pub fn unavailable(doing: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unavailable { doing, source: source.into() }
    }
}
