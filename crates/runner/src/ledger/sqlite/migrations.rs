//! The ledger's tables, and whether a file has them.

use std::collections::HashSet;

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
    let applied: HashSet<i64> = applied.iter().map(|migration| migration.version).collect();
    let migrator = migrator();
    if let Some(newer) = applied.iter().find(|version| !migrator.version_exists(**version)) {
        return Err(MigrateError::VersionMissing(*newer));
    }
    let missing = migrator.iter().filter(|migration| !applied.contains(&migration.version));
    Ok(missing.map(|migration| format!("{:04}_{}", migration.version, migration.description)).collect())
}
