//! The ledger's tables, and whether a file has them.

use sqlx::SqlStr;
use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::SqliteConnection;

/// Our name for the bookkeeping: the file may hold the user's own migrations.
const TABLE: &str = "runner_migrations";

fn migrator() -> Migrator {
    let migration = |version, what: &'static str, sql: &'static str| {
        Migration::new(version, what.into(), MigrationType::Simple, SqlStr::from_static(sql), false)
    };
    let mut migrator = Migrator::with_migrations(vec![migration(
        1,
        "ledger",
        include_str!("../../../../../migrations/sqlite/0001_ledger.sql"),
    )]);
    migrator.dangerous_set_table_name(TABLE);
    migrator
}

/// Applies what is missing and names it.
pub(super) async fn apply(conn: &mut SqliteConnection) -> Result<Vec<String>, MigrateError> {
    let missing = missing(conn).await?;
    migrator().run(conn).await?;
    Ok(missing)
}

/// Names what is missing; nothing is written.
pub(super) async fn missing(conn: &mut SqliteConnection) -> Result<Vec<String>, MigrateError> {
    let table = sqlx::query("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1").bind(TABLE);
    let applied = match table.fetch_optional(&mut *conn).await? {
        Some(_) => conn.list_applied_migrations(TABLE).await?,
        None => Vec::new(),
    };
    let migrator = migrator();
    for found in &applied {
        match migrator.iter().find(|migration| migration.version == found.version) {
            None => return Err(MigrateError::VersionMissing(found.version)),
            Some(known) if known.checksum != found.checksum => {
                return Err(MigrateError::VersionMismatch(found.version));
            }
            Some(_) => {}
        }
    }
    let is_missing = |migration: &&Migration| applied.iter().all(|found| found.version != migration.version);
    let name = |migration: &Migration| format!("{:04}_{}", migration.version, migration.description);
    Ok(migrator.iter().filter(is_missing).map(name).collect())
}
