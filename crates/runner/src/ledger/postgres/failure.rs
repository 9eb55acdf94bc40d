//! What an error of the database means to us.

use sqlx::postgres::PgDatabaseError;

use crate::firing::UnknownWord;
use crate::ledger::LedgerError;

/// How a question failed, before it is known who asked.
#[derive(Debug)]
pub(super) enum Failure {
    /// The client or the server says so.
    Sql(sqlx::Error),
    /// The answer makes no sense.
    Corrupt(String),
    /// Other writers came and went for longer than we were ready to repeat ourselves.
    Restless,
    /// The server takes no rows: a standby, or a primary that was demoted.
    OnlyReads,
}

impl From<sqlx::Error> for Failure {
    fn from(error: sqlx::Error) -> Self {
        match error {
            sqlx::Error::ColumnDecode { index, source } => Self::Corrupt(format!("column {index}: {source}")),
            error => Self::Sql(error),
        }
    }
}

impl From<UnknownWord> for Failure {
    fn from(error: UnknownWord) -> Self {
        Self::Corrupt(error.to_string())
    }
}

impl Failure {
    /// The error of the operation that `doing` names.
    pub(super) fn while_we(self, doing: &'static str) -> LedgerError {
        match self {
            Self::Corrupt(what) => LedgerError::Corrupt { what },
            Self::Restless => LedgerError::Busy {
                doing,
                source: "what stood in the way was gone each time we looked, and back each time we tried"
                    .into(),
            },
            Self::OnlyReads => LedgerError::Unavailable {
                doing,
                source: "the server only reads; it is a standby, or was made one".into(),
            },
            // A clash that was tried again in vain, or a row that someone keeps locked.
            Self::Sql(error) if is_clash(&error) || code(&error) == Some("55P03") => {
                LedgerError::Busy { doing, source: error.into() }
            }
            Self::Sql(error) if is_outage(&error) => LedgerError::Unavailable { doing, source: error.into() },
            Self::Sql(error) => LedgerError::Refused { doing, source: error.into() },
        }
    }
}

/// The server's five-letter code, if the error is the server's.
pub(super) fn code(error: &sqlx::Error) -> Option<&str> {
    let error = error.as_database_error()?;
    Some(error.try_downcast_ref::<PgDatabaseError>()?.code())
}

/// What to do about a server that will refuse us every time, if it is one.
pub(super) fn remedy(error: &sqlx::Error) -> Option<&'static str> {
    match code(error)? {
        // A pooler speaks to us with the codes of a server.
        "08P01" if error.to_string().contains("startup parameter") => Some(
            "a pooler stands before the database and refuses our start parameters: set `pooler = true` in [ledger]",
        ),
        "28000" | "28P01" => Some("the server refuses this user, or the password: check the URL"),
        "3D000" => Some("the server has no such database: create it, or check the URL"),
        "42501" => Some("this user may not make or read the ledger's tables: grant it the schema"),
        _ => None,
    }
}

/// Whether the server ended the statement in favour of another one: nothing happened, try again.
pub(super) fn is_clash(error: &sqlx::Error) -> bool {
    matches!(code(error), Some("40001" | "40P01"))
}

/// Whether the server has ended the session: since nobody used it (where an operator has set
/// `idle_session_timeout`), or because somebody told it to. Another session is worth a try at once, for
/// every question is safe to repeat; a server that shuts down lets nobody in.
pub(super) fn is_stale(error: &sqlx::Error) -> bool {
    matches!(code(error), Some("57P01" | "57P05"))
}

/// Whether the constraint `name` refused the row.
pub(super) fn is_refused_by(error: &sqlx::Error, name: &str) -> bool {
    error.as_database_error().is_some_and(|error| error.constraint() == Some(name))
}

/// Whether waiting may help: nothing is wrong with the question.
fn is_outage(error: &sqlx::Error) -> bool {
    match code(error) {
        // Connections, transactions, resources, operator intervention, the system; then: a read-only
        // standby, a transaction that the server ended.
        Some(code) => {
            let class = code.get(..2).unwrap_or_default();
            matches!(class, "08" | "40" | "53" | "57" | "58") || matches!(code, "25006" | "25P02" | "25P03")
        }
        None => matches!(
            error,
            sqlx::Error::Io(_)
                | sqlx::Error::Tls(_)
                | sqlx::Error::Protocol(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed
        ),
    }
}

/// Whether the connection is of no use after this error: the server refused the statement but goes on
/// with us, or the connection is broken, or leads to a server that only reads.
pub(super) fn taints(error: &sqlx::Error) -> bool {
    code(error).is_none_or(|code| match code.get(..2).unwrap_or_default() {
        "57" => code != "57014",
        "08" | "25" | "58" => true,
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unanswered_question_is_an_outage_and_closes_its_connection() {
        for error in [
            sqlx::Error::PoolTimedOut,
            sqlx::Error::Io(std::io::Error::from(std::io::ErrorKind::ConnectionReset)),
            sqlx::Error::Protocol("half a message".into()),
        ] {
            assert!(taints(&error), "{error}");
            let failure = Failure::from(error).while_we("test");
            assert!(failure.is_unavailable(), "{failure}");
        }
    }

    #[test]
    fn a_row_that_cannot_be_read_is_corrupt_rather_than_an_outage() {
        let error = sqlx::Error::ColumnDecode { index: "state".into(), source: "what is this".into() };
        let failure = Failure::from(error).while_we("test");
        assert!(matches!(failure, LedgerError::Corrupt { .. }), "{failure}");
        let failure = Failure::from("stopped".parse::<crate::firing::State>().unwrap_err()).while_we("test");
        assert!(matches!(failure, LedgerError::Corrupt { .. }), "{failure}");
    }
}
