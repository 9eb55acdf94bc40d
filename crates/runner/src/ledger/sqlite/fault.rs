//! Errors inside an operation, before the name of the operation is added.

use std::fmt::Display;

use crate::ledger::LedgerError;

/// An operation that gave no answer.
#[derive(Debug)]
pub(super) enum Fault {
    /// An error of the client or the database.
    Sql(sqlx::Error),
    /// A row contains a value that no version of this program writes.
    Corrupt(String),
    /// Every try took no effect, and every time the reason was gone when we read it, until the tries were used
    /// up. Other writers changed the rows in between.
    Contended,
    /// Other transactions held the file's write lock for too long. Nothing has happened.
    Busy,
}

impl Fault {
    /// A column that cannot be read.
    pub(super) fn corrupt(column: &str, error: impl Display) -> Self {
        Self::Corrupt(format!("column {column}: {error}"))
    }

    /// The error that the caller sees.
    pub(super) fn while_doing(self, doing: &'static str) -> LedgerError {
        match self {
            Self::Corrupt(what) => LedgerError::Corrupt { what },
            Self::Contended => LedgerError::Busy {
                doing,
                source: "other writers changed the same rows between all tries".into(),
            },
            Self::Busy => {
                LedgerError::Busy { doing, source: "another transaction held the write lock".into() }
            }
            Self::Sql(error @ (sqlx::Error::ColumnDecode { .. } | sqlx::Error::ColumnNotFound(_))) => {
                LedgerError::Corrupt { what: error.to_string() }
            }
            Self::Sql(error) if waiting_may_help(&error) => {
                LedgerError::Unavailable { doing, source: error.into() }
            }
            Self::Sql(error) => LedgerError::Refused { doing, source: error.into() },
        }
    }
}

impl From<sqlx::Error> for Fault {
    fn from(error: sqlx::Error) -> Self {
        Self::Sql(error)
    }
}

/// Result codes of SQLite that we tell apart; <https://www.sqlite.org/rescode.html>.
pub(super) mod code {
    pub(crate) const BUSY: i32 = 5;
    pub(crate) const LOCKED: i32 = 6;
    pub(crate) const READONLY: i32 = 8;
    pub(crate) const IOERR: i32 = 10;
    pub(crate) const CORRUPT: i32 = 11;
    pub(crate) const FULL: i32 = 13;
    pub(crate) const CANTOPEN: i32 = 14;
    pub(crate) const PROTOCOL: i32 = 15;
    pub(crate) const NOTADB: i32 = 26;
}

/// The primary result code, if the error is from SQLite.
pub(super) fn primary_code(error: &sqlx::Error) -> Option<i32> {
    let extended: i32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(extended & 0xff)
}

/// Whether another connection holds a lock that this one needs. Nothing has happened, so trying again is safe.
pub(super) fn is_busy(error: &sqlx::Error) -> bool {
    matches!(primary_code(error), Some(code::BUSY | code::LOCKED))
}

fn waiting_may_help(error: &sqlx::Error) -> bool {
    match primary_code(error) {
        Some(code) => matches!(
            code,
            code::BUSY | code::LOCKED | code::IOERR | code::FULL | code::CANTOPEN | code::PROTOCOL
        ),
        None => true,
    }
}
