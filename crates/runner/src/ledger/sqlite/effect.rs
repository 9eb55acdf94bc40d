//! Effect transactions in SQLite.
//!
//! The file has only one writer at a time, among all processes. An effect transaction takes the write lock when it
//! begins. If it took the lock only at its first write, it would fail whenever another process has written since
//! its first read. So all other writers wait for it, heartbeats included, and it must be short: it may last a
//! third of the shortest ttl, so that no lease ends meanwhile. Nobody can take over a run meanwhile, because that
//! is a write too. If an owner is frozen in its transaction, all writers of the file wait until it wakes or is
//! killed, and nothing runs twice.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use lockcore::BootInstant;
use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{Sqlite, SqliteConnectOptions, SqliteConnection};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::SqliteLedger;
use super::fault::{Fault, is_busy, primary_code};
use super::lane::{connect, jitter};
use crate::clock::Clock;
use crate::ledger::effect::{self, EffectError, EffectTerms, Effects, Work};
use crate::ledger::{Answer, LedgerError, Run};

/// The error code of a statement that was stopped because the transaction's time was over.
const INTERRUPT: i32 = 9;

/// The longest limit of a transaction, however long the leases are. It is shorter than the time limit of the
/// ledger's other calls.
const LONGEST: Duration = Duration::from_secs(4);

/// How many steps of a statement there are between two checks of the clock: well below a millisecond.
const STEPS: i32 = 2_000;

const BEGIN: &str = "begin an effect";
const SETTLE: &str = "end the run of an effect";
const COMMIT: &str = "commit an effect";

/// Allows one transaction of this process at a time: SQLite has one writer anyway, and waiting here is fair.
#[derive(Debug)]
pub(super) struct EffectSlot {
    options: SqliteConnectOptions,
    turn: Arc<Semaphore>,
    limit: Duration,
}

impl EffectSlot {
    /// `timeout` is the one of the ledger's calls: at most a quarter of the shortest lease.
    pub(super) fn new(options: SqliteConnectOptions, timeout: Duration) -> Self {
        let limit = (timeout * 4 / 3).min(LONGEST);
        Self { options, turn: Arc::new(Semaphore::new(1)), limit }
    }
}

impl Effects for SqliteLedger {
    fn begin<'a>(&'a self, terms: &'a EffectTerms) -> Answer<'a, Option<Box<dyn Work>>> {
        Box::pin(async move {
            match timeout(terms.left(), self.open_effect(terms)).await {
                Ok(Ok(work)) => Ok(work.map(|work| Box::new(work) as Box<dyn Work>)),
                Ok(Err(fault)) => Err(fault.while_doing(BEGIN)),
                Err(elapsed) => Err(LedgerError::Unavailable { doing: BEGIN, source: elapsed.into() }),
            }
        })
    }

    fn committed(&self, run: Run) -> Answer<'_, bool> {
        self.answer("confirm an effect", async move {
            let mut write = self.writer.begin().await?;
            let committed = self
                .of_run(include_str!("sql/effect_committed.sql"), run)
                .fetch_optional(&mut *write)
                .await?
                .is_some();
            write.roll_back().await?;
            Ok(committed)
        })
    }
}

impl SqliteLedger {
    async fn open_effect(&self, terms: &EffectTerms) -> Result<Option<SqliteWork>, Fault> {
        let slot = &self.effects;
        let permit = slot.turn.clone().acquire_owned().await.map_err(|_| sqlx::Error::PoolClosed)?;
        // A new connection each time, so that a job never sees session settings of another job.
        let mut connection = connect(&slot.options).await?;
        loop {
            match effect::begin::<Sqlite>(&mut connection, "BEGIN IMMEDIATE").await {
                Ok(()) => break,
                Err(error) if is_busy(&error) => tokio::time::sleep(jitter()).await,
                Err(error) => return Err(error.into()),
            }
        }
        // From here on all other writers wait for us.
        let limit = slot.limit.min(terms.lease / 3);
        let limit = TimeLimit::new(terms.clock.clone(), terms.clock.boot_now() + limit, limit);
        limit.apply_to(&mut connection).await?;
        let mut work = SqliteWork { limit, connection, namespace: self.namespace.clone(), _permit: permit };
        // If the job sends a COMMIT or ROLLBACK itself, this savepoint ends too, and its RELEASE fails later.
        sqlx::query("SAVEPOINT runner_effect").execute(&mut work.connection).await?;
        let ours = self
            .of_run(include_str!("sql/effect_ours.sql"), terms.run)
            .fetch_optional(&mut work.connection)
            .await?;
        Ok(ours.map(|_| work))
    }
}

/// An open transaction that holds the file's write lock. When it is dropped, a running statement is stopped, and
/// the connection is closed, which rolls everything back.
#[derive(Debug)]
struct SqliteWork {
    // The order matters for the drop: the running statement must stop before its connection can close, and only
    // then may the permit let the next transaction begin.
    limit: TimeLimit,
    connection: SqliteConnection,
    namespace: Arc<str>,
    _permit: OwnedSemaphorePermit,
}

impl Work for SqliteWork {
    fn postgres(&mut self) -> Option<Result<&mut PgConnection, EffectError>> {
        None
    }

    fn sqlite(&mut self) -> Option<Result<&mut SqliteConnection, EffectError>> {
        Some(Ok(&mut self.connection))
    }

    fn settle<'a>(
        &'a mut self,
        terms: &'a EffectTerms,
        output: Option<String>,
    ) -> BoxFuture<'a, Result<(), EffectError>> {
        Box::pin(async move {
            let limit = self.limit.span;
            if self.limit.is_over() {
                return Err(EffectError::TooLong { limit });
            }
            if sqlx::query("RELEASE runner_effect").execute(&mut self.connection).await.is_err() {
                return Err(EffectError::Broken);
            }
            let settle = sqlx::query(include_str!("sql/effect_settle.sql"))
                .bind(&*self.namespace)
                .bind(terms.run.id.0)
                .bind(terms.run.fence.0)
                .bind(output);
            match settle.execute(&mut self.connection).await {
                Ok(done) if done.rows_affected() == 1 => Ok(()),
                Ok(_) => Err(EffectError::TakenOver),
                Err(error) if primary_code(&error) == Some(INTERRUPT) => Err(EffectError::TooLong { limit }),
                Err(error) => Err(Fault::from(error).while_doing(SETTLE).into()),
            }
        })
    }

    fn commit(mut self: Box<Self>) -> Answer<'static, ()> {
        Box::pin(async move {
            let committed = effect::commit::<Sqlite>(&mut self.connection).await;
            committed.map_err(|error| Fault::from(error).while_doing(COMMIT))?;
            let Self { connection, limit: _limit, _permit, .. } = *self;
            // Waits for the close, so that the file is free when the job goes on. An error does not matter: it
            // has committed.
            drop(connection.close().await);
            Ok(())
        })
    }
}

/// Stops the statements of a transaction when its time is over or when it is dropped. The database works inside
/// this process, so there is no server that could stop them.
struct TimeLimit {
    clock: Arc<dyn Clock>,
    until: BootInstant,
    span: Duration,
    dropped: Arc<AtomicBool>,
}

impl TimeLimit {
    fn new(clock: Arc<dyn Clock>, until: BootInstant, span: Duration) -> Self {
        Self { clock, until, span, dropped: Arc::default() }
    }

    fn is_over(&self) -> bool {
        self.clock.boot_now() >= self.until
    }

    async fn apply_to(&self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        let (clock, until, dropped) = (self.clock.clone(), self.until, self.dropped.clone());
        connection.lock_handle().await?.set_progress_handler(STEPS, move || {
            !dropped.load(Ordering::Relaxed) && clock.boot_now() < until
        });
        Ok(())
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
    }
}

impl fmt::Debug for TimeLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TimeLimit").field("until", &self.until).finish_non_exhaustive()
    }
}
