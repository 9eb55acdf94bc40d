//! Effect transactions in SQLite.
//!
//! The file has one writer at a time, in all processes together. An effect transaction takes the write
//! lock when it begins: one that took it with its first write would fail wherever another process has
//! written since its first read. So it keeps every other writer waiting, heartbeats included, and must
//! be short: it may last a third of the shortest ttl, so that no lease ends behind it. Nobody can
//! take a run over meanwhile, for that is a write too: an owner that is frozen in its transaction holds
//! up the whole file until it wakes or is killed, and nothing runs twice.

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

/// What a statement says that was stopped because the transaction's time was over.
const INTERRUPT: i32 = 9;

/// No transaction may last longer, however long the leases are: less than the ledger's other calls are
/// ready to wait.
const LONGEST: Duration = Duration::from_secs(4);

/// How many steps a statement takes between two looks at the clock: well below a millisecond.
const STEPS: i32 = 2_000;

const BEGIN: &str = "begin an effect";
const SETTLE: &str = "end the run of an effect";
const COMMIT: &str = "commit an effect";

/// One transaction of this process at a time: SQLite has one writer anyway, and waiting here is fair.
#[derive(Debug)]
pub(super) struct EffectDoor {
    options: SqliteConnectOptions,
    turn: Arc<Semaphore>,
    limit: Duration,
}

impl EffectDoor {
    /// `timeout` is that of the ledger's calls, at most a quarter of the shortest lease.
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
        let door = &self.effects;
        let permit = door.turn.clone().acquire_owned().await.map_err(|_| sqlx::Error::PoolClosed)?;
        // A new one each time: what a job leaves in its session is nothing for the next one.
        let mut connection = connect(&door.options).await?;
        loop {
            match effect::begin::<Sqlite>(&mut connection, "BEGIN IMMEDIATE").await {
                Ok(()) => break,
                Err(error) if is_busy(&error) => tokio::time::sleep(jitter()).await,
                Err(error) => return Err(error.into()),
            }
        }
        // From here on everybody else waits for us.
        let limit = door.limit.min(terms.lease / 3);
        let leash = Leash::new(terms.clock.clone(), terms.clock.boot_now() + limit, limit);
        leash.put_on(&mut connection).await?;
        let mut work = SqliteWork { leash, connection, namespace: self.namespace.clone(), _permit: permit };
        // A COMMIT or ROLLBACK of the work's own ends this too, and then we shall miss it.
        sqlx::query("SAVEPOINT runner_effect").execute(&mut work.connection).await?;
        let ours = self
            .of_run(include_str!("sql/effect_ours.sql"), terms.run)
            .fetch_optional(&mut work.connection)
            .await?;
        Ok(ours.map(|_| work))
    }
}

/// An open transaction that holds the file's write lock. Dropped, a statement that still runs is
/// stopped, and closing the connection rolls everything back.
#[derive(Debug)]
struct SqliteWork {
    // In this order: the running statement must stop before its connection can close, and the next
    // transaction may come when the lock is about to be free.
    leash: Leash,
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
            let limit = self.leash.span;
            if self.leash.is_over() {
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
            let Self { connection, leash: _leash, _permit, .. } = *self;
            // In order, so that the file is free when the job goes on. It has committed, come what may.
            drop(connection.close().await);
            Ok(())
        })
    }
}

/// Stops the statements of a transaction whose time is over, or which nobody wants any more. The
/// database works in this process: there is no server to do it.
struct Leash {
    clock: Arc<dyn Clock>,
    until: BootInstant,
    span: Duration,
    dropped: Arc<AtomicBool>,
}

impl Leash {
    fn new(clock: Arc<dyn Clock>, until: BootInstant, span: Duration) -> Self {
        Self { clock, until, span, dropped: Arc::default() }
    }

    fn is_over(&self) -> bool {
        self.clock.boot_now() >= self.until
    }

    async fn put_on(&self, connection: &mut SqliteConnection) -> Result<(), sqlx::Error> {
        let (clock, until, dropped) = (self.clock.clone(), self.until, self.dropped.clone());
        connection.lock_handle().await?.set_progress_handler(STEPS, move || {
            !dropped.load(Ordering::Relaxed) && clock.boot_now() < until
        });
        Ok(())
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        self.dropped.store(true, Ordering::Relaxed);
    }
}

impl fmt::Debug for Leash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leash").field("until", &self.until).finish_non_exhaustive()
    }
}
