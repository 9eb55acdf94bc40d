//! The ledger's tables, and whether a file has them.

use sqlx::SqlSafeStr as _;
use sqlx::migrate::{Migrate as _, MigrateError, Migration, MigrationType};
use sqlx::sqlite::SqliteConnection;

/// A table name of our own: the file may also contain the migrations table of the user.
const TABLE: &str = "runner_migrations";

/// The migrations that this program knows, oldest first.
fn known() -> [Migration; 2] {
    let ledger = include_str!("../../../../../migrations/sqlite/0001_ledger.sql").into_sql_str();
    let server = include_str!("../../../../../migrations/sqlite/0002_server.sql").into_sql_str();
    [(1, "ledger", ledger), (2, "server", server)]
        .map(|(version, what, sql)| Migration::new(version, what.into(), MigrationType::Simple, sql, false))
}

/// Applies the missing migrations and returns their names. The caller must keep other processes out meanwhile.
pub(super) async fn apply(conn: &mut SqliteConnection) -> Result<Vec<String>, MigrateError> {
    let missing = missing(conn).await?;
    conn.ensure_migrations_table(TABLE).await?;
    for migration in &missing {
        conn.apply(TABLE, migration).await?;
    }
    Ok(missing.iter().map(name).collect())
}

/// The migrations that are not applied yet. Writes nothing.
pub(super) async fn missing(conn: &mut SqliteConnection) -> Result<Vec<Migration>, MigrateError> {
    let table = sqlx::query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1").bind(TABLE);
    let applied = match table.fetch_optional(&mut *conn).await? {
        Some(_) => conn.list_applied_migrations(TABLE).await?,
        None => Vec::new(),
    };
    let known = known();
    for found in &applied {
        match known.iter().find(|migration| migration.version == found.version) {
            None => return Err(MigrateError::VersionMissing(found.version)),
            Some(known) if known.checksum != found.checksum => {
                return Err(MigrateError::VersionMismatch(found.version));
            }
            Some(_) => {}
        }
    }
    let is_missing = |migration: &Migration| applied.iter().all(|found| found.version != migration.version);
    Ok(known.into_iter().filter(is_missing).collect())
}

/// The name of the migration's file.
pub(super) fn name(migration: &Migration) -> String {
    format!("{:04}_{}", migration.version, migration.description)
}
