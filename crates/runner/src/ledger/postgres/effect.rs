//! Effect transactions in PostgreSQL.
//!
//! A transaction may take as long as its run, so the server must notice when its owner is gone: an
//! owner that is frozen between two statements is thrown out after half of its ttl, one that is frozen
//! during a statement when that ends, or when the next attempt begins, or at its timeout. None of
//! them can commit by then, but their locks would stand in the way of those who can.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{Connection as _, Executor as _};
use tokio::runtime::{Handle, Id};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::PostgresLedger;
use super::connection::Statement;
use super::failure::{Failure, code};
use super::rows::{get, millis};
use crate::ledger::effect::{self, EffectError, EffectTerms, Effects, Inner, Work};
use crate::ledger::{Answer, LedgerError, LedgerOptions, Run};

/// Transactions at once of one runtime.
const PLACES: usize = 8;

const BEGIN: &str = "begin an effect";
const SETTLE: &str = "end the run of an effect";
const COMMIT: &str = "commit an effect";
const CONFIRM: &str = "confirm an effect";

/// A connection for each transaction, closed with it: what a job leaves in its session (settings,
/// temporary tables, advisory locks) is nothing for the next one.
///
/// Each connection lives on the runtime that asked for it, and each runtime has its own places: jobs may
/// block the threads of theirs, and must then hold up nobody else.
#[derive(Clone)]
pub(super) struct EffectDoor {
    connect: PgConnectOptions,
    timeout: Duration,
    places: Arc<Mutex<HashMap<Id, Arc<Semaphore>>>>,
}

impl fmt::Debug for EffectDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The options hold a password.
        f.debug_struct("EffectDoor").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl EffectDoor {
    pub(super) fn new(connect: &PgConnectOptions, options: &LedgerOptions) -> Self {
        Self { connect: connect.clone(), timeout: options.timeout, places: Arc::default() }
    }

    /// A place among the transactions of the caller's runtime.
    async fn place(&self) -> Result<OwnedSemaphorePermit, Failure> {
        let runtime = Handle::current().id();
        let places = {
            let mut places = self.places.lock().unwrap_or_else(PoisonError::into_inner);
            places.entry(runtime).or_insert_with(|| Arc::new(Semaphore::new(PLACES))).clone()
        };
        Ok(places.acquire_owned().await.map_err(|_| sqlx::Error::PoolClosed)?)
    }

    async fn connection(&self) -> Result<PgConnection, Failure> {
        Ok(PgConnection::connect_with(&self.connect).await?)
    }
}

/// Gives `work` so much time.
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
    fn begin<'a>(&'a self, terms: &'a EffectTerms) -> Answer<'a, Option<Work>> {
        Box::pin(async move {
            let place = within(terms.left(), BEGIN, self.effects.place()).await?;
            let opened = within(self.effects.timeout, BEGIN, self.open_effect(place, terms)).await?;
            Ok(opened.map(|work| Work(Inner::Postgres(work))))
        })
    }

    fn committed(&self, run: Run) -> Answer<'_, bool> {
        Box::pin(within(self.effects.timeout, CONFIRM, async move {
            let mut connection = self.effects.connection().await?;
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
        place: OwnedSemaphorePermit,
        terms: &EffectTerms,
    ) -> Result<Option<PostgresWork>, Failure> {
        let mut connection = self.effects.connection().await?;
        // Whatever the database's defaults are: under a stricter isolation the run's own heartbeats
        // would make its last statement fail.
        effect::begin(&mut connection, "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE").await?;
        let begin = self
            .of_run(include_str!("sql/effect_begin.sql"), terms.run)
            .bind(millis(terms.left()).max(1).to_string())
            .bind(millis(terms.lease).max(1).to_string())
            // Half of it: the lease was renewed at most a third of it ago, so two thirds are left.
            .bind((millis(terms.lease) / 2).max(1).to_string());
        let row = begin.persistent(false).fetch_one(&mut connection).await?;
        if !get::<bool>(&row, "ours")? {
            return Ok(None);
        }
        let mark: String = get(&row, "mark")?;
        if terms.attempt > 1 {
            let evict = sqlx::query(include_str!("sql/effect_evict.sql")).bind(&mark);
            evict.persistent(false).execute(&mut connection).await?;
        }
        Ok(Some(PostgresWork {
            connection,
            namespace: self.namespace.clone(),
            timeout: self.effects.timeout,
            mark,
            search_path: get(&row, "search_path")?,
            _place: place,
        }))
    }

    /// A statement whose first three arguments name a run.
    fn of_run(&self, sql: &'static str, run: Run) -> Statement<'_> {
        sqlx::query(sql).bind(&*self.namespace).bind(run.id.0).bind(run.fence.0)
    }
}

/// An open transaction. Dropped, its connection is closed, and the server rolls it back.
#[derive(Debug)]
pub(in crate::ledger) struct PostgresWork {
    connection: PgConnection,
    namespace: Arc<str>,
    timeout: Duration,
    mark: String,
    search_path: String,
    _place: OwnedSemaphorePermit,
}

impl PostgresWork {
    pub(in crate::ledger) fn connection(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    pub(in crate::ledger) async fn settle(
        &mut self,
        terms: &EffectTerms,
        output: Option<String>,
    ) -> Result<(), EffectError> {
        // The row's lock is free but for the moment of a heartbeat.
        match within(self.timeout, SETTLE, self.end_run(terms.run, output)).await? {
            Ended::Ours => Ok(()),
            Ended::TakenOver => Err(EffectError::TakenOver),
            Ended::Elsewhere => Err(EffectError::Broken),
        }
    }

    async fn end_run(&mut self, run: Run, output: Option<String>) -> Result<Ended, Failure> {
        let connection = &mut self.connection;
        let path = sqlx::query(include_str!("sql/effect_path.sql")).bind(&self.search_path);
        match path.persistent(false).execute(&mut *connection).await {
            // A statement had failed and the job went on: the server takes nothing but a rollback.
            Err(error) if code(&error) == Some("25P02") => return Ok(Ended::Elsewhere),
            done => done?,
        };
        let settle = sqlx::query(include_str!("sql/effect_settle.sql"))
            .bind(&*self.namespace)
            .bind(run.id.0)
            .bind(run.fence.0)
            .bind(&self.mark)
            .bind(output);
        if settle.persistent(false).fetch_optional(&mut *connection).await?.is_some() {
            return Ok(Ended::Ours);
        }
        let whole = sqlx::query(include_str!("sql/effect_whole.sql")).bind(&self.mark);
        let row = whole.persistent(false).fetch_one(connection).await?;
        Ok(if get(&row, "whole")? { Ended::TakenOver } else { Ended::Elsewhere })
    }

    /// Commits, however long that takes (constraints may be checked only now): the run's own limits end
    /// the wait.
    pub(in crate::ledger) async fn commit(mut self) -> Result<(), LedgerError> {
        let committed = self.connection.execute("COMMIT").await;
        committed.map_err(|error| Failure::from(error).while_we(COMMIT))?;
        // In order, or else the server's log complains. It has committed, come what may.
        drop(timeout(self.timeout, self.connection.close()).await);
        Ok(())
    }
}

/// What became of the last statement.
enum Ended {
    Ours,
    TakenOver,
    /// The transaction that we began is broken, or is no more.
    Elsewhere,
}
