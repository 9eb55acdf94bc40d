//! What an error of the database means for the runner.

use sqlx::postgres::PgDatabaseError;

use crate::firing::UnknownWord;
use crate::ledger::LedgerError;

/// How a statement failed, before the name of the operation is added.
#[derive(Debug)]
pub(super) enum Failure {
    /// An error of the client or the server.
    Sql(sqlx::Error),
    /// The answer makes no sense.
    Corrupt(String),
    /// Every try took no effect, and every time the reason was gone when we read it, until the tries were used
    /// up. Other writers changed the rows in between.
    Contended,
    /// The server accepts no writes: a standby, or a primary that was demoted.
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
            Self::Contended => LedgerError::Busy {
                doing,
                source: "other writers changed the same rows between all tries".into(),
            },
            Self::OnlyReads => LedgerError::Unavailable {
                doing,
                source: "the server is read-only: it is a standby, or has become one".into(),
            },
            // A clash in spite of all tries, or a row that another transaction keeps locked.
            Self::Sql(error) if is_clash(&error) || code(&error) == Some("55P03") => {
                LedgerError::Busy { doing, source: error.into() }
            }
            Self::Sql(error) if is_outage(&error) => LedgerError::Unavailable { doing, source: error.into() },
            Self::Sql(error) => LedgerError::Refused { doing, source: error.into() },
        }
    }
}

/// The server's five-character code, if the error is from the server.
pub(super) fn code(error: &sqlx::Error) -> Option<&str> {
    let error = error.as_database_error()?;
    Some(error.try_downcast_ref::<PgDatabaseError>()?.code())
}

/// What to do about an error that trying again cannot cure, if it is one.
pub(super) fn remedy(error: &sqlx::Error) -> Option<&'static str> {
    match code(error)? {
        // A pooler uses the same codes as a server.
        "08P01" if error.to_string().contains("startup parameter") => Some(
            "a pooler in front of the database refuses our start parameters: set `pooler = true` in [ledger]",
        ),
        "28000" | "28P01" => Some("the server refuses this user, or the password: check the URL"),
        "3D000" => Some("the server has no such database: create it, or check the URL"),
        "42501" => Some("this user may not create or read the ledger's tables: grant it the schema"),
        _ => None,
    }
}

/// Whether the server aborted the statement because of another transaction (deadlock, serialization). Nothing
/// happened, so it can be tried again.
pub(super) fn is_clash(error: &sqlx::Error) -> bool {
    matches!(code(error), Some("40001" | "40P01"))
}

/// Whether the server has ended the session: it was idle for too long (`idle_session_timeout`), or an operator
/// ended it. Then another session is tried at once, since every statement is safe to repeat. A server that
/// shuts down accepts no new session, so this ends.
pub(super) fn is_stale(error: &sqlx::Error) -> bool {
    matches!(code(error), Some("57P01" | "57P05"))
}

/// Whether the constraint `name` refused the row.
pub(super) fn is_refused_by(error: &sqlx::Error, name: &str) -> bool {
    error.as_database_error().is_some_and(|error| error.constraint() == Some(name))
}

/// Whether waiting may help, because the statement itself is not the problem.
fn is_outage(error: &sqlx::Error) -> bool {
    match code(error) {
        // The classes: connection, transaction, resources, operator intervention, system. The codes: a read-only
        // server, a transaction that has failed, a transaction that was ended because it was idle.
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

/// Whether the connection must be closed after this error: it is broken, or its server is read-only. After other
/// errors the server has only refused the statement, and the connection stays usable.
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
    fn a_statement_without_an_answer_is_an_outage_and_closes_its_connection() {
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
