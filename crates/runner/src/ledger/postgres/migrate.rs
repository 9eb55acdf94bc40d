//! Migrates the schema, in one process at a time.

use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::migrate::{Migration, MigrationType};
use sqlx::postgres::PgConnectOptions;
use sqlx::{Connection, Executor, PgConnection, Row as _, SqlSafeStr as _};

use super::failure::{Failure, code, remedy};
use crate::ledger::LedgerError;

/// The time limit for everything, including the wait for another process that is migrating.
const DEADLINE: Duration = Duration::from_secs(60);

/// The time limit for connecting. A server that does not answer counts as away, and is tried again.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The migrations that this program knows, oldest first.
fn known() -> [Migration; 2] {
    let ledger = include_str!("../../../../../migrations/postgres/0001_ledger.sql").into_sql_str();
    let server = include_str!("../../../../../migrations/postgres/0002_server.sql").into_sql_str();
    [(1, "ledger", ledger), (2, "server", server)]
        .map(|(version, what, sql)| Migration::new(version, what.into(), MigrationType::Simple, sql, false))
}

/// Applies the missing migrations and returns their names.
///
/// Everything is in one transaction: the lock that makes other processes wait, the migrations, and their
/// records. So it works behind a pooler, and if the process dies halfway, nothing has changed.
///
/// # Errors
/// [`LedgerError::Unusable`] when the schema is newer or a different one, and the errors of any statement.
pub(super) async fn migrate(connect: &PgConnectOptions) -> Result<Vec<String>, LedgerError> {
    let work = async {
        let mut connection = enter(connect).await?;
        let mut transaction = connection.begin().await?;
        // A process that waited for another must see what that one has applied, whatever the database's default
        // isolation level is. And the usual time limits are far too short for rewriting a table.
        let how = "SET TRANSACTION ISOLATION LEVEL read committed;
            SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0";
        transaction.execute(how).await?;
        transaction.execute(include_str!("sql/migrations_lock.sql")).await?;
        transaction.execute(include_str!("sql/migrations_table.sql")).await?;
        let missing = match missing(&applied(&mut transaction).await?) {
            Ok(missing) => missing,
            Err(unusable) => return Ok(Err(unusable)),
        };
        let mut done = Vec::new();
        for migration in missing {
            transaction.execute(migration.sql.clone()).await?;
            let record = sqlx::query(include_str!("sql/migrations_record.sql"))
                .persistent(false)
                .bind(migration.version)
                .bind(&*migration.description)
                .bind(&*migration.checksum);
            record.execute(&mut *transaction).await?;
            done.push(format!("{:04}_{}", migration.version, migration.description));
        }
        transaction.commit().await?;
        connection.close().await?;
        Ok(Ok(done))
    };
    within("bring its schema up to date", Box::pin(work)).await?
}

/// Connects once and checks that the schema is there and is the one this program knows.
///
/// # Errors
/// [`LedgerError::Unusable`] when it is not, and the errors of any statement.
pub(super) async fn check(connect: &PgConnectOptions) -> Result<(), LedgerError> {
    let work = async {
        let mut connection = enter(connect).await?;
        let applied = match applied(&mut connection).await {
            Err(error) if code(&error) == Some("42P01") => Vec::new(),
            applied => applied?,
        };
        connection.close().await?;
        Ok(missing(&applied))
    };
    match within("open it", Box::pin(work)).await?? {
        missing if missing.is_empty() => Ok(()),
        _ => Err(unusable("the database lacks the ledger's tables, or has old ones: run `runner migrate`")),
    }
}

/// Connects once and checks that the server has applied our start parameters (the time limits).
///
/// A pooler can be configured to ignore them silently. Such a pooler could also execute a statement that another
/// client has prepared under the same name. So it is better to stop before the first claim.
///
/// # Errors
/// [`LedgerError::Unusable`] when they were dropped, and the errors of any statement.
pub(super) async fn check_guards(connect: &PgConnectOptions, limit: Duration) -> Result<(), LedgerError> {
    let work = async {
        let mut connection = enter(connect).await?;
        let row = connection.fetch_one("SELECT setting FROM pg_settings WHERE name = 'statement_timeout'");
        let kept: String = row.await?.try_get("setting")?;
        connection.close().await?;
        Ok(kept)
    };
    match within("open it", Box::pin(work)).await? {
        kept if kept == limit.as_millis().to_string() => Ok(()),
        _ => Err(unusable(
            "a pooler in front of the database drops our start parameters: set `pooler = true` in [ledger]",
        )),
    }
}

/// The versions in the database, with the checksums of the applied migrations. The statement is not prepared, so
/// that it works behind a pooler.
async fn applied(connection: &mut PgConnection) -> Result<Vec<(i64, Vec<u8>)>, sqlx::Error> {
    let rows = connection.fetch_all(include_str!("sql/migrations_applied.sql")).await?;
    rows.iter().map(|row| Ok((row.try_get("version")?, row.try_get("checksum")?))).collect()
}

/// The migrations that are not applied yet.
fn missing(applied: &[(i64, Vec<u8>)]) -> Result<Vec<Migration>, LedgerError> {
    let known = known();
    for (version, checksum) in applied {
        match known.iter().find(|migration| migration.version == *version) {
            None => {
                return Err(unusable(&format!(
                    "its schema is newer (version {version}) than this program (version {}): upgrade the program",
                    known.len()
                )));
            }
            Some(migration) if *migration.checksum != **checksum => {
                return Err(unusable(&format!(
                    "its schema is a different one: version {version} was applied from a different file"
                )));
            }
            Some(_) => {}
        }
    }
    let is_missing = |migration: &Migration| applied.iter().all(|(version, _)| *version != migration.version);
    Ok(known.into_iter().filter(is_missing).collect())
}

async fn enter(connect: &PgConnectOptions) -> Result<PgConnection, sqlx::Error> {
    match tokio::time::timeout(CONNECT_TIMEOUT, PgConnection::connect_with(connect)).await {
        Ok(connection) => connection,
        Err(late) => Err(sqlx::Error::Io(std::io::Error::new(std::io::ErrorKind::TimedOut, late))),
    }
}

async fn within<T>(
    doing: &'static str,
    work: BoxFuture<'_, Result<T, sqlx::Error>>,
) -> Result<T, LedgerError> {
    match tokio::time::timeout(DEADLINE, work).await {
        Ok(answer) => answer.map_err(|error| match remedy(&error) {
            Some(hint) => LedgerError::Unusable { hint: hint.into(), source: Some(error.into()) },
            None => Failure::from(error).while_we(doing),
        }),
        Err(late) => Err(LedgerError::Unavailable { doing, source: late.into() }),
    }
}

fn unusable(hint: &str) -> LedgerError {
    LedgerError::Unusable { hint: hint.to_owned(), source: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_that_is_ahead_or_different_is_refused() {
        let [first, second] = known().map(|migration| (migration.version, migration.checksum.to_vec()));
        assert_eq!(missing(&[]).unwrap().len(), 2);
        assert_eq!(missing(std::slice::from_ref(&first)).unwrap().len(), 1);
        assert_eq!(missing(&[first.clone(), second.clone()]).unwrap().len(), 0);
        let newer = missing(&[first, second, (3, vec![0])]).unwrap_err();
        assert!(newer.to_string().contains("newer (version 3)"), "{newer}");
        let other = missing(&[(1, vec![0])]).unwrap_err();
        assert!(other.to_string().contains("different file"), "{other}");
    }
}
