//! The kind `sql`: statements in the ledger's own database. They and the end of their run are one commit.

mod params;
mod script;

use std::fmt::Write as _;

use sqlx::postgres::{PgArguments, Postgres};
use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments};
use sqlx::{AssertSqlSafe, SqlSafeStr as _, SqlStr};

use crate::firing::instant;
use crate::job::{Job, JobContext, JobError};
use crate::ledger::Transaction;
pub use params::SqlParams;
use script::{Bind, Script, UserStatement};

/// Runs statements in one transaction, which also ends the firing as succeeded. So their effect is committed
/// exactly once, or the firing has not succeeded.
///
/// An error that no further attempt can cure (a mistake in a statement, a missing table, a missing right)
/// means "fail"; every other error means "retry".
#[derive(Clone, Debug)]
pub struct Sql {
    script: Script,
}

impl Sql {
    /// A job that runs what `params` say.
    #[must_use]
    pub fn new(params: SqlParams) -> Self {
        Self { script: params.script }
    }

    async fn work(&self, ctx: &JobContext) -> Result<Transaction, JobError> {
        let mut transaction = ctx.transaction().await?;
        let mut report = String::new();
        for (at, statement) in self.script.statements.iter().enumerate() {
            let number = at + 1;
            let rows = match run_one(&mut transaction, statement, ctx).await {
                Ok(rows) => rows,
                Err(error) => return Err(error.at(number)),
            };
            // Writing to a string cannot fail.
            let _written = writeln!(report, "statement {number}: {rows} rows");
        }
        ctx.set_output(report);
        Ok(transaction)
    }
}

impl Job for Sql {
    /// # Cancel safety
    /// Dropping the future closes the connection, and the database rolls the statements back.
    async fn run(&self, ctx: &JobContext) -> Result<(), JobError> {
        let transaction = tokio::select! {
            biased;
            cause = ctx.cancelled() => return Err(JobError::retry(format!("rolled back: {cause}"))),
            worked = self.work(ctx) => worked?,
        };
        // Outside the `select!`: a cancellation could not stop the commit any more, only lose its answer.
        Ok(transaction.commit().await?)
    }
}

async fn run_one(
    transaction: &mut Transaction,
    statement: &UserStatement,
    ctx: &JobContext,
) -> Result<u64, SqlRefusal> {
    if let Ok(connection) = transaction.postgres() {
        return Ok(postgres(statement, ctx).execute(connection).await?.rows_affected());
    }
    match transaction.sqlite() {
        Ok(_) if statement.has_question_mark => Err(SqlRefusal::QuestionMark),
        Ok(connection) => Ok(sqlite(statement, ctx).execute(connection).await?.rows_affected()),
        Err(error) => Err(SqlRefusal::NoConnection(error.to_string())),
    }
}

/// The text is the operator's own, from jobs.toml. Values of a run are only ever passed as binds.
fn text(statement: &UserStatement) -> SqlStr {
    AssertSqlSafe(statement.text.clone()).into_sql_str()
}

fn postgres(statement: &UserStatement, ctx: &JobContext) -> Query<'static, Postgres, PgArguments> {
    let small = |number: u32| i32::try_from(number).unwrap_or(i32::MAX);
    let query = sqlx::query(text(statement)).persistent(false);
    statement.binds.iter().fold(query, |query, bind| match bind {
        Bind::Job => query.bind(ctx.job().to_owned()),
        Bind::ScheduledAt => query.bind(ctx.scheduled_at()),
        Bind::Shard => query.bind(small(ctx.shard())),
        Bind::Shards => query.bind(small(ctx.shards())),
        Bind::Fence => query.bind(ctx.fence().0),
        Bind::Attempt => query.bind(small(ctx.attempt())),
        Bind::IdempotencyKey => query.bind(ctx.idempotency_key()),
    })
}

fn sqlite(statement: &UserStatement, ctx: &JobContext) -> Query<'static, Sqlite, SqliteArguments> {
    let query = sqlx::query(text(statement)).persistent(false);
    statement.binds.iter().fold(query, |query, bind| match bind {
        Bind::Job => query.bind(ctx.job().to_owned()),
        // SQLite has no type for instants. This text sorts in the order of time.
        Bind::ScheduledAt => query.bind(instant(ctx.scheduled_at())),
        Bind::Shard => query.bind(ctx.shard()),
        Bind::Shards => query.bind(ctx.shards()),
        Bind::Fence => query.bind(ctx.fence().0),
        Bind::Attempt => query.bind(ctx.attempt()),
        Bind::IdempotencyKey => query.bind(ctx.idempotency_key()),
    })
}

/// Why a statement did not run.
#[derive(Debug, thiserror::Error)]
enum SqlRefusal {
    #[error(transparent)]
    Database(#[from] sqlx::Error),
    #[error("a ? is not a bind here: use a named bind, like :shard")]
    QuestionMark,
    #[error("{0}")]
    NoConnection(String),
}

impl SqlRefusal {
    /// Whether every further attempt would fail too.
    fn is_final(&self) -> bool {
        /// SQLite's code for a statement that cannot be compiled: a mistake, or a missing table.
        const SQLITE_ERROR: &str = "1";
        /// PostgreSQL's code for what is not allowed in a transaction: VACUUM, CREATE INDEX CONCURRENTLY.
        const IN_NO_TRANSACTION: &str = "25001";
        match self {
            Self::QuestionMark => true,
            Self::NoConnection(_) => false,
            Self::Database(error) => {
                let code = error.as_database_error().and_then(|error| error.code());
                // Class 42: a mistake in the statement, an unknown name, a missing right.
                code.is_some_and(|code| {
                    code == SQLITE_ERROR
                        || code == IN_NO_TRANSACTION
                        || (code.len() == 5 && code.starts_with("42"))
                })
            }
        }
    }

    fn at(self, number: usize) -> JobError {
        let text = format!("statement {number}: {self}");
        if self.is_final() { JobError::fail(text) } else { JobError::retry(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_that_the_statement_did_not_cause_is_retried() {
        assert!(SqlRefusal::QuestionMark.is_final());
        for temporary in [sqlx::Error::PoolTimedOut, sqlx::Error::Protocol("half a message".into())] {
            let refusal = SqlRefusal::from(temporary);
            assert!(!refusal.is_final(), "{refusal}");
            assert!(refusal.at(2).to_string().starts_with("statement 2: "));
        }
    }
}
