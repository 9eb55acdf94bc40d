//! Opens the file, in one process at a time, and says clearly why it cannot be used.

use std::ffi::OsString;
use std::fs::{self, File, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Connection;
use sqlx::migrate::MigrateError;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqliteSynchronous};

use super::fault::{code, is_busy, primary_code};
use super::lane::{Lane, connect, jitter};
use super::migrations;
use crate::ledger::LedgerError;

const OPEN: &str = "open the ledger";

/// Connections that only read. Reads are short; more would only add threads.
const READERS: usize = 4;

/// How long a writer waits inside SQLite for the lock, before our own loop waits for it.
const WRITER_BUSY: Duration = Duration::from_millis(5);

/// A reader waits only while another process recovers the log or writes it into the file.
const READER_BUSY: Duration = Duration::from_millis(250);

/// Switching to the write-ahead log and migrating wait for other users of the file.
const OPENER_BUSY: Duration = Duration::from_secs(5);

/// Only our user may read and write the ledger's files. They contain the outputs of jobs, and a user who can
/// write them can decide what runs.
const OURS_ALONE: u32 = 0o600;

/// The file to open.
#[derive(Debug)]
pub(super) struct FilePlace {
    options: SqliteConnectOptions,
    /// `None` in memory.
    file: Option<PathBuf>,
}

/// The connections of an open file.
#[derive(Debug)]
pub(super) struct OpenedFile {
    pub(super) writer: Arc<Lane>,
    pub(super) readers: Arc<Lane>,
    /// For connections of jobs' own transactions.
    pub(super) effects: SqliteConnectOptions,
    /// A ledger in memory ends with its last connection, and lanes may close theirs. So this one stays open.
    pub(super) anchor: Option<SqliteConnection>,
}

impl FilePlace {
    /// Reads `sqlite:<path>` or `sqlite::memory:`.
    pub(super) fn parse(url: &str) -> Result<Self, LedgerError> {
        let refuse = |hint: &str, source| LedgerError::Unusable { hint: hint.into(), source };
        let path = url.trim_start_matches("sqlite:").trim_start_matches("//");
        if path.is_empty() {
            return Err(refuse("sqlite: needs a path, like sqlite:runner.db", None));
        }
        if path.contains('?') {
            return Err(refuse("sqlite: takes only a path, without parameters", None));
        }
        let options = SqliteConnectOptions::from_str(url)
            .map_err(|error| refuse("the path is not valid in a URL", Some(error.into())))?
            .synchronous(SqliteSynchronous::Full);
        let options = sqlx::ConnectOptions::disable_statement_logging(options);
        let file = (path != ":memory:").then(|| options.get_filename().to_owned());
        Ok(Self { options, file })
    }

    /// Applies the missing migrations and returns their names.
    pub(super) async fn migrate(&self, patience: Duration) -> Result<Vec<String>, LedgerError> {
        let gate = self.gate(patience).await?;
        let mut conn = self.establish(true).await?;
        let applied = migrations::apply(&mut conn).await.map_err(|error| self.unmigratable(error))?;
        conn.close().await.map_err(|error| self.unusable(error))?;
        drop(gate);
        Ok(applied)
    }

    /// Opens the file. With `migrate`, it creates and migrates the file first.
    pub(super) async fn open(&self, migrate: bool, patience: Duration) -> Result<OpenedFile, LedgerError> {
        if !migrate && self.file.as_deref().is_some_and(|path| !path.exists()) {
            let hint = format!("{} does not exist; run `runner migrate`", self.name());
            return Err(LedgerError::Unusable { hint, source: None });
        }
        let gate = self.gate(patience).await?;
        let mut conn = self.establish(migrate).await?;
        let missing = if migrate {
            migrations::apply(&mut conn).await.map(|_| Vec::new())
        } else {
            migrations::missing(&mut conn).await
        };
        if let [first, ..] = missing.map_err(|error| self.unmigratable(error))?.as_slice() {
            let lacks = migrations::name(first);
            let hint = format!("{} lacks {lacks}; run `runner migrate`", self.name());
            return Err(LedgerError::Unusable { hint, source: None });
        }
        let effects = self.options.clone().busy_timeout(WRITER_BUSY);
        // Shorter than the time limit of a call, so that a call which only waited for the lock can say so.
        let turn = patience * 4 / 5;
        let writer = Arc::new(Lane::new(effects.clone(), 1, turn));
        let readers = match self.file {
            Some(_) => {
                let options = self.options.clone().busy_timeout(READER_BUSY).pragma("query_only", "ON");
                Arc::new(Lane::new(options, READERS, turn))
            }
            None => Arc::clone(&writer),
        };
        let anchor = if self.file.is_some() {
            // Open another connection before closing this one. When the last user closes the file, SQLite writes
            // the log into it, and another process that opens the file then would fail.
            let first = writer.lend().await.map_err(|fault| fault.while_doing(OPEN))?;
            first.give_back();
            conn.close().await.map_err(|error| self.unusable(error))?;
            None
        } else {
            Some(conn)
        };
        drop(gate);
        Ok(OpenedFile { writer, readers, effects, anchor })
    }

    /// Waits until no other process opens or migrates this file. SQLite cannot do that itself: switching to the
    /// write-ahead log fails at once if another process does it too, and so does a migration if another process
    /// has just created its tables.
    async fn gate(&self, patience: Duration) -> Result<Option<File>, LedgerError> {
        let Some(path) = &self.file else { return Ok(None) };
        let mut lock: OsString = path.clone().into();
        lock.push(".lock");
        // The file is never removed: a process that waits for its lock would then lock a removed file.
        let file = create(Path::new(&lock)).map_err(|error| self.unwritable(error.into()))?;
        let wait = async {
            loop {
                match file.try_lock() {
                    Ok(()) => return Ok(()),
                    Err(TryLockError::WouldBlock) => tokio::time::sleep(jitter()).await,
                    Err(TryLockError::Error(error)) => {
                        let hint = format!(
                            "the file system of {} does not support locks; use a local one",
                            self.name()
                        );
                        return Err(LedgerError::Unusable { hint, source: Some(error.into()) });
                    }
                }
            }
        };
        match tokio::time::timeout(patience, wait).await {
            Ok(locked) => locked.map(|()| Some(file)),
            Err(elapsed) => Err(LedgerError::Unavailable { doing: OPEN, source: elapsed.into() }),
        }
    }

    /// The first connection, with the write-ahead log on.
    async fn establish(&self, create: bool) -> Result<SqliteConnection, LedgerError> {
        self.keep_private(create).map_err(|error| self.unwritable(error.into()))?;
        let options = self
            .options
            .clone()
            .create_if_missing(create)
            .journal_mode(SqliteJournalMode::Wal)
            .busy_timeout(OPENER_BUSY);
        let mut conn = tokio::time::timeout(OPENER_BUSY, connect(&options))
            .await
            .map_err(|elapsed| LedgerError::Unavailable { doing: OPEN, source: elapsed.into() })?
            .map_err(|error| self.unusable(error))?;
        let mode: String = sqlx::query_scalar("PRAGMA journal_mode")
            .fetch_one(&mut conn)
            .await
            .map_err(|error| self.unusable(error))?;
        if self.file.is_some() && mode != "wal" {
            let hint = format!(
                "{} must be on a local file system: this one does not support a write-ahead log",
                self.name()
            );
            return Err(LedgerError::Unusable { hint, source: None });
        }
        Ok(conn)
    }

    /// Creates the ledger's file if it is missing, and removes the rights of other users from the existing files.
    /// SQLite gives the files that it creates beside it the same rights.
    fn keep_private(&self, create_missing: bool) -> std::io::Result<()> {
        let Some(path) = &self.file else { return Ok(()) };
        if create_missing {
            drop(create(path)?);
        }
        for suffix in ["", "-wal", "-shm", ".lock"] {
            let mut beside: OsString = path.clone().into();
            beside.push(suffix);
            match narrow(Path::new(&beside)) {
                // There is no such file; or it belongs to another user, and only that user can change its rights.
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) => {}
                narrowed => narrowed?,
            }
        }
        Ok(())
    }

    fn name(&self) -> std::path::Display<'_> {
        self.file.as_deref().unwrap_or(Path::new(":memory:")).display()
    }

    fn unwritable(&self, source: Box<dyn std::error::Error + Send + Sync>) -> LedgerError {
        let parent = self.file.as_deref().and_then(Path::parent).filter(|path| !path.as_os_str().is_empty());
        let hint = match parent {
            Some(parent) if !parent.exists() => format!("there is no directory {}", parent.display()),
            _ => format!("{} or a file beside it cannot be written", self.name()),
        };
        LedgerError::Unusable { hint, source: Some(source) }
    }

    fn unusable(&self, error: sqlx::Error) -> LedgerError {
        let name = self.name();
        let hint = match primary_code(&error) {
            _ if is_busy(&error) => return LedgerError::Unavailable { doing: OPEN, source: error.into() },
            Some(code::READONLY | code::CANTOPEN) => return self.unwritable(error.into()),
            Some(code::NOTADB) => format!("{name} is not a SQLite database"),
            Some(code::CORRUPT) => format!("{name} is damaged"),
            _ => format!("{name} cannot be used"),
        };
        LedgerError::Unusable { hint, source: Some(error.into()) }
    }

    fn unmigratable(&self, error: MigrateError) -> LedgerError {
        let name = self.name();
        let hint = match error {
            MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
                return self.unusable(error);
            }
            MigrateError::VersionMissing(version) => {
                format!("{name} has migration {version} of a newer runner; use that one")
            }
            _ => format!("{name} was not made by this runner's migrations"),
        };
        LedgerError::Unusable { hint, source: Some(error.into()) }
    }
}

/// Opens a file for writing. A file that it creates is accessible to our user only.
fn create(path: &Path) -> std::io::Result<File> {
    File::options().create(true).truncate(false).write(true).mode(OURS_ALONE).open(path)
}

fn narrow(path: &Path) -> std::io::Result<()> {
    let mode = fs::metadata(path)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, Permissions::from_mode(mode & OURS_ALONE))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without these settings no other test would fail; the loss would show only after a power failure.
    #[tokio::test]
    async fn connections_write_durably_and_readers_cannot_write() {
        async fn pragma(lane: &Lane, sql: &'static str) -> i64 {
            let mut conn = lane.lend().await.expect("a connection");
            let value = sqlx::query_scalar(sql).fetch_one(&mut *conn).await.expect("a value");
            conn.give_back();
            value
        }
        let dir = tempfile::TempDir::new().expect("a temporary directory");
        let place = FilePlace::parse(&format!("sqlite:{}/runner.db", dir.path().display())).expect("a place");
        let opened = place.open(true, OPENER_BUSY).await.expect("opened");
        assert_eq!(pragma(&opened.writer, "PRAGMA synchronous").await, 2, "FULL");
        assert_eq!(pragma(&opened.writer, "PRAGMA foreign_keys").await, 1);
        assert_eq!(pragma(&opened.writer, "PRAGMA query_only").await, 0);
        assert_eq!(pragma(&opened.readers, "PRAGMA query_only").await, 1);
    }
}
