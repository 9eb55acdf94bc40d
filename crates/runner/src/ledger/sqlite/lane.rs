//! Connections to one file. A connection is given back to its lane or closed, so it is never reused in the
//! middle of a transaction.

use std::ops::{Deref, DerefMut};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sqlx::ConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use tokio::sync::{Semaphore, SemaphorePermit};
use uuid::Uuid;

use super::fault::{Fault, is_busy};

/// A small pool of connections, lent in the order of the requests.
///
/// All writes of a process go through a lane with one connection. SQLite has only one writer at a time anyway.
/// Waiting here is fair, while waiting inside SQLite is polling.
#[derive(Debug)]
pub(super) struct Lane {
    options: SqliteConnectOptions,
    /// How long a transaction waits for its turn.
    patience: Duration,
    permits: Semaphore,
    idle: Mutex<Vec<SqliteConnection>>,
}

impl Lane {
    /// At most `size` connections, opened when they are first needed.
    pub(super) fn new(options: SqliteConnectOptions, size: usize, patience: Duration) -> Self {
        Self { options, patience, permits: Semaphore::new(size), idle: Mutex::default() }
    }

    /// A connection for one statement outside a transaction.
    pub(super) async fn lend(&self) -> Result<Lent<'_>, Fault> {
        let permit = self.permits.acquire().await.map_err(|_| sqlx::Error::PoolClosed)?;
        let idle = self.idle().pop();
        let conn = match idle {
            Some(conn) => conn,
            None => connect(&self.options).await?,
        };
        Ok(Lent { conn, lane: self, _permit: permit })
    }

    /// A connection that holds the file's write lock: nothing that is read in the transaction can change before
    /// it commits. If others keep the lock for too long, this fails and nothing has happened.
    pub(super) async fn begin(&self) -> Result<Write<'_>, Fault> {
        let turn = async {
            let mut lent = self.lend().await?;
            loop {
                match sqlx::query("BEGIN IMMEDIATE").execute(&mut *lent).await {
                    Ok(_) => return Ok(Write(lent)),
                    Err(error) if is_busy(&error) => tokio::time::sleep(jitter()).await,
                    Err(error) => return Err(error.into()),
                }
            }
        };
        tokio::time::timeout(self.patience, turn).await.unwrap_or(Err(Fault::Busy))
    }

    fn idle(&self) -> MutexGuard<'_, Vec<SqliteConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Opens a connection. When the last user of the file closes it, that process locks the file for a moment to
/// write the log into it. This waits for that, within the caller's time limit.
pub(super) async fn connect(options: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    loop {
        match options.connect().await {
            Err(error) if is_busy(&error) => tokio::time::sleep(jitter()).await,
            result => return result,
        }
    }
}

/// A connection that is closed unless it is given back. So a call that is dropped midway leaves no running
/// statement and no transaction that holds the lock.
#[derive(Debug)]
pub(super) struct Lent<'l> {
    conn: SqliteConnection,
    lane: &'l Lane,
    _permit: SemaphorePermit<'l>,
}

impl Lent<'_> {
    /// Gives the connection back, after its statement has ended.
    pub(super) fn give_back(self) {
        self.lane.idle().push(self.conn);
    }
}

impl Deref for Lent<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.conn
    }
}

impl DerefMut for Lent<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.conn
    }
}

/// An open transaction. When it is dropped, its connection is closed, which rolls it back.
#[derive(Debug)]
pub(super) struct Write<'l>(Lent<'l>);

impl Write<'_> {
    /// Commits the writes.
    pub(super) async fn commit(mut self) -> Result<(), Fault> {
        sqlx::query("COMMIT").execute(&mut *self.0).await?;
        self.0.give_back();
        Ok(())
    }

    /// Undoes the writes.
    pub(super) async fn roll_back(mut self) -> Result<(), Fault> {
        sqlx::query("ROLLBACK").execute(&mut *self.0).await?;
        self.0.give_back();
        Ok(())
    }
}

impl Deref for Write<'_> {
    type Target = SqliteConnection;

    fn deref(&self) -> &SqliteConnection {
        &self.0.conn
    }
}

impl DerefMut for Write<'_> {
    fn deref_mut(&mut self) -> &mut SqliteConnection {
        &mut self.0.conn
    }
}

/// About as long as a commit takes. SQLite's own waiting checks the lock only every tenth of a second after a
/// while. A process that checks so rarely can starve beside one that writes all the time.
pub(super) fn jitter() -> Duration {
    let [byte, ..] = Uuid::new_v4().into_bytes();
    Duration::from_micros(500 + 10 * u64::from(byte))
}
