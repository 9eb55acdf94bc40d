//! Effect transactions in PostgreSQL.
//!
//! A transaction may take as long as its run, so the server must notice when its owner is gone. If an owner is
//! frozen between two statements, the server ends the session after half of the ttl. If it is frozen during a
//! statement, the session ends when the statement ends, when the next attempt begins, or at the timeout. Such an
//! owner could not commit any more, but its locks would block the next owner.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{PgConnectOptions, PgConnection, PgPool, PgPoolOptions, PgRow};
use sqlx::sqlite::SqliteConnection;
use sqlx::{Connection as _, Executor as _, Postgres};
use tokio::runtime::{Handle, Id};
use tokio::time::timeout;

use super::PostgresLedger;
use super::connection::{Statement, forget_idle};
use super::failure::{Failure, code};
use super::rows::{get, millis};
use crate::ledger::effect::{self, EffectError, EffectTerms, Effects, Work};
use crate::ledger::{Answer, LedgerError, LedgerOptions, Run};

/// Connections of one runtime.
const CONNECTIONS: u32 = 8;

const BEGIN: &str = "begin an effect";
const SETTLE: &str = "end the run of an effect";
const COMMIT: &str = "commit an effect";
const CONFIRM: &str = "confirm an effect";

/// A small pool for each runtime. A connection stops working while the runtime on which it was opened is blocked,
/// and jobs may block theirs.
#[derive(Clone)]
pub(super) struct EffectPools {
    connect: PgConnectOptions,
    timeout: Duration,
    pooler: bool,
    pools: Arc<Mutex<HashMap<Id, PgPool>>>,
}

impl fmt::Debug for EffectPools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The options hold a password.
        f.debug_struct("EffectPools").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl EffectPools {
    /// Opens no connection yet.
    pub(super) fn new(connect: &PgConnectOptions, options: &LedgerOptions) -> Self {
        let LedgerOptions { timeout, pooler, .. } = *options;
        Self { connect: connect.clone(), timeout, pooler, pools: Arc::default() }
    }

    /// As [`super::connection::Link::forget_idle`].
    pub(super) fn forget_idle(&self) {
        self.pools.lock().unwrap_or_else(PoisonError::into_inner).values().for_each(forget_idle);
    }

    /// The pool of the runtime that the caller runs on.
    fn here(&self) -> PgPool {
        let mut pools = self.pools.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = pools.entry(Handle::current().id()).or_insert_with(|| {
            PgPoolOptions::new()
                .max_connections(CONNECTIONS)
                // The time of the run already limits this wait.
                .acquire_timeout(Duration::from_secs(24 * 3600))
                // This costs a round trip. But a stale connection would cost a run an attempt, perhaps its only
                // one.
                .test_before_acquire(true)
                .idle_timeout(Duration::from_secs(60))
                .max_lifetime(Duration::from_secs(600))
                .connect_lazy_with(self.connect.clone())
        });
        pool.clone()
    }
}

/// Does `work` within `limit`.
async fn within<T>(
    limit: Duration,
    doing: &'static str,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, LedgerError> {
    match timeout(limit, work).await {
        Ok(answer) => answer.map_err(|failure| failure.while_we(doing)),
        Err(late) => Err(LedgerError::Unavailable { doing, source: late.into() }),
    }
}

impl Effects for PostgresLedger {
    fn begin<'a>(&'a self, terms: &'a EffectTerms) -> Answer<'a, Option<Box<dyn Work>>> {
        Box::pin(async move {
            let acquire = async { Ok(self.effects.here().acquire().await?) };
            let connection = within(terms.left(), BEGIN, acquire).await?;
            let opened = within(self.effects.timeout, BEGIN, self.open_effect(connection, terms)).await?;
            Ok(opened.map(|work| Box::new(work) as Box<dyn Work>))
        })
    }

    fn committed(&self, run: Run) -> Answer<'_, bool> {
        Box::pin(within(self.effects.timeout, CONFIRM, async move {
            let mut connection = PgConnection::connect_with(&self.effects.connect).await?;
            let mut transaction = connection.begin().await?;
            let found = self.of_run(include_str!("sql/effect_committed.sql"), run);
            let row = found.persistent(false).fetch_optional(&mut *transaction).await?;
            transaction.rollback().await?;
            connection.close().await?;
            row.map_or(Ok(false), |row| get(&row, "committed"))
        }))
    }
}

impl PostgresLedger {
    async fn open_effect(
        &self,
        connection: PoolConnection<Postgres>,
        terms: &EffectTerms,
    ) -> Result<Option<PostgresWork>, Failure> {
        let mut session = EffectSession { connection: Some(connection), pooler: self.effects.pooler };
        // Set explicitly, because the database's defaults may differ: under a stricter isolation level the run's
        // own heartbeats would make its last statement fail.
        let how = "BEGIN ISOLATION LEVEL read committed READ WRITE";
        effect::begin::<Postgres>(session.live()?, how).await?;
        let begin = self
            .of_run(include_str!("sql/effect_begin.sql"), terms.run)
            .bind(millis(terms.left()).max(1).to_string())
            .bind(millis(terms.lease).max(1).to_string())
            // Half of the lease: it was renewed at most a third of a lease ago, so two thirds are left.
            .bind((millis(terms.lease) / 2).max(1).to_string());
        let row = session.row(begin).await?.ok_or(sqlx::Error::RowNotFound)?;
        if !get::<bool>(&row, "ours")? {
            return Ok(None);
        }
        let mark: String = get(&row, "mark")?;
        if terms.attempt > 1 {
            session.row(sqlx::query(include_str!("sql/effect_evict.sql")).bind(&mark)).await?;
        }
        Ok(Some(PostgresWork {
            session,
            namespace: self.namespace.clone(),
            timeout: self.effects.timeout,
            mark,
            search_path: get(&row, "search_path")?,
        }))
    }
}

/// An open transaction. When it is dropped, its connection is closed and the server rolls back.
#[derive(Debug)]
struct PostgresWork {
    session: EffectSession,
    namespace: Arc<str>,
    timeout: Duration,
    mark: String,
    search_path: String,
}

impl Work for PostgresWork {
    fn postgres(&mut self) -> Option<Result<&mut PgConnection, EffectError>> {
        Some(self.session.live().map_err(|failure| failure.while_we(BEGIN).into()))
    }

    fn sqlite(&mut self) -> Option<Result<&mut SqliteConnection, EffectError>> {
        None
    }

    fn settle<'a>(
        &'a mut self,
        terms: &'a EffectTerms,
        output: Option<String>,
    ) -> BoxFuture<'a, Result<(), EffectError>> {
        Box::pin(async move {
            match within(terms.left(), SETTLE, self.end_run(terms.run, output)).await? {
                Last::Ours => Ok(()),
                Last::TakenOver => Err(EffectError::TakenOver),
                Last::Elsewhere => Err(EffectError::Broken),
            }
        })
    }

    /// Without a limit of its own (deferred constraints may be checked only now): the run's limits end the wait.
    fn commit(mut self: Box<Self>) -> Answer<'static, ()> {
        Box::pin(async move {
            let committed = match self.session.live() {
                Ok(connection) => effect::commit::<Postgres>(connection).await.map_err(Failure::from),
                Err(failure) => Err(failure),
            };
            committed.map_err(|failure| failure.while_we(COMMIT))?;
            // It has committed, so nothing after this may fail. A connection that is not clean in time is closed.
            drop(timeout(self.timeout, self.session.give_back()).await);
            Ok(())
        })
    }
}

impl PostgresWork {
    async fn end_run(&mut self, run: Run, output: Option<String>) -> Result<Last, Failure> {
        let path = sqlx::query(include_str!("sql/effect_path.sql")).bind(&self.search_path);
        match self.session.row(path).await {
            // A statement had failed and the job went on. Now the server accepts only a rollback.
            Err(Failure::Sql(error)) if code(&error) == Some("25P02") => return Ok(Last::Elsewhere),
            done => done?,
        };
        let settle = sqlx::query(include_str!("sql/effect_settle.sql"))
            .bind(&*self.namespace)
            .bind(run.id.0)
            .bind(run.fence.0)
            .bind(&self.mark)
            .bind(output);
        if self.session.row(settle).await?.is_some() {
            return Ok(Last::Ours);
        }
        let whole = sqlx::query(include_str!("sql/effect_whole.sql")).bind(&self.mark);
        let whole = self.session.row(whole).await?.map(|row| get::<bool>(&row, "whole")).transpose()?;
        Ok(if whole == Some(true) { Last::TakenOver } else { Last::Elsewhere })
    }
}

/// The result of the last statement.
enum Last {
    Ours,
    TakenOver,
    /// The transaction that we began has failed, or was ended by the job.
    Elsewhere,
}

/// A borrowed connection. It is closed unless it is given back with `give_back`: the pool would otherwise wait
/// until the server has finished its statement.
#[derive(Debug)]
struct EffectSession {
    connection: Option<PoolConnection<Postgres>>,
    pooler: bool,
}

impl EffectSession {
    fn live(&mut self) -> Result<&mut PgConnection, Failure> {
        match &mut self.connection {
            Some(connection) => Ok(connection),
            None => Err(sqlx::Error::PoolClosed.into()),
        }
    }

    async fn row(&mut self, statement: Statement<'_>) -> Result<Option<PgRow>, Failure> {
        let statement = statement.persistent(!self.pooler);
        Ok(statement.fetch_optional(self.live()?).await?)
    }

    async fn give_back(&mut self) {
        // Behind a pooler the cleaning would run in another session. The pooler itself cleans the session that
        // we used.
        let is_clean = self.pooler
            || match self.live() {
                Ok(connection) => connection.execute(include_str!("sql/effect_cleanse.sql")).await.is_ok(),
                Err(_) => false,
            };
        if is_clean {
            // Dropping it gives it back to the pool.
            drop(self.connection.take());
        }
    }
}

impl Drop for EffectSession {
    fn drop(&mut self) {
        if let Some(connection) = self.connection.take() {
            drop(connection.detach());
        }
    }
}
