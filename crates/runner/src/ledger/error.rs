//! Errors of the ledger: each means that we do not know the answer.

use std::error::Error;

/// The ledger gave no usable answer. Unknown is not yes: after an error nothing runs.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// No answer in time, or no connection. The statement may have taken effect.
    #[error("the ledger did not answer the request to {doing}")]
    Unavailable {
        /// The operation.
        doing: &'static str,
        /// What the client reported.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The database answered that other transactions blocked this one for too long. Nothing happened.
    #[error("other transactions blocked the request to {doing}")]
    Busy {
        /// The operation.
        doing: &'static str,
        /// What the database said.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The database answered with an error of its own (a missing table, a refused permission).
    #[error("the ledger refused to {doing}")]
    Refused {
        /// The operation.
        doing: &'static str,
        /// What the database said.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// A row contains a value that no version of this program writes.
    #[error("the ledger holds an unreadable row: {what}")]
    Corrupt {
        /// Which row and column.
        what: String,
    },
    /// The ledger cannot be opened with these settings.
    #[error("cannot open the ledger: {hint}")]
    Unusable {
        /// What to do about it.
        hint: String,
        /// The cause, if there is one.
        #[source]
        source: Option<Box<dyn Error + Send + Sync>>,
    },
}

impl LedgerError {
    /// Whether waiting may help: the ledger is away, rather than wrong.
    #[must_use]
    pub const fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }
}
