//! What it means when the ledger fails: we do not know what happened.

use std::error::Error;

/// The ledger gave no usable answer. Unknown is not yes: nothing runs on an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// No answer in time, or no connection. The statement may have taken effect.
    #[error("the ledger did not answer while we wanted to {doing}")]
    Unavailable {
        /// The operation.
        doing: &'static str,
        /// What the client reported.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// The database answered that others stood in the way for too long. Nothing happened.
    #[error("others kept the ledger from letting us {doing}")]
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
    /// A row holds what no version of this program writes.
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
        /// What went wrong, if something underneath did.
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
