//! A job's work and the end of its run in one commit.
//!
//! The work is done in the ledger's own database, in a transaction whose last statement ends the run under its
//! fence. So the effect is committed if and only if the firing has succeeded. It does not matter what happens to
//! the lock, the owner or the answer: if the owner is no longer the owner, its last statement matches no row,
//! and everything before it is rolled back.

use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use lockcore::BootInstant;
use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{Database, SqlSafeStr as _};
use sqlx_core::transaction::TransactionManager;

use super::{Answer, LedgerError, Run};
use crate::clock::Clock;

/// The pause before a database that did not answer is asked again.
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Opens effect transactions, on connections that the corridor never uses.
///
/// # Cancel safety
/// Both calls may be dropped; a transaction that was about to be opened is rolled back.
pub trait Effects: fmt::Debug + Send + Sync + 'static {
    /// Opens the transaction of a run, on the runtime of the caller; `None` if the run is not (or no
    /// longer) running under this fence.
    fn begin<'a>(&'a self, terms: &'a EffectTerms) -> Answer<'a, Option<Box<dyn Work>>>;

    /// After a commit whose answer was lost: whether the run has succeeded under this fence. Waits for a commit
    /// that is still in progress, so that the answer is final.
    fn committed(&self, run: Run) -> Answer<'_, bool>;
}

/// The run that a transaction belongs to, and how long it may take.
#[derive(Clone, Debug)]
pub struct EffectTerms {
    /// Which run.
    pub run: Run,
    /// Which attempt of its firing, from 1.
    pub attempt: u32,
    /// The job's ttl.
    pub lease: Duration,
    /// When the run's `timeout` ends.
    pub deadline: BootInstant,
    /// The clock of the deadline.
    pub clock: Arc<dyn Clock>,
}

impl EffectTerms {
    /// The time that is left of the run's `timeout`.
    pub(super) fn left(&self) -> Duration {
        self.deadline.saturating_since(self.clock.boot_now())
    }
}

/// Why there is no transaction, or why it did not commit.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EffectError {
    /// The context was made without a ledger.
    #[error("this run has no ledger to open a transaction in")]
    NotOffered,
    /// The ledger has given the run to someone else, or ended it: nothing was committed.
    #[error("the run was taken over; its transaction is rolled back")]
    TakenOver,
    /// The run has committed already, and that ended its firing.
    #[error("this run has already committed a transaction, and that ended the firing")]
    Ended,
    /// Another transaction of the same run is open.
    #[error("the run has a transaction open already")]
    Open,
    /// The ledger is in the other database.
    #[error("the ledger is in {found}")]
    OtherDatabase {
        /// Where it is.
        found: &'static str,
    },
    /// One of its statements failed and the job went on, or the job sent a COMMIT or ROLLBACK itself.
    #[error("one of the transaction's own statements failed, or ended the transaction")]
    Broken,
    /// It took longer than its limit: nothing was committed.
    #[error("the transaction took longer than its limit of {limit:?}")]
    TooLong {
        /// How long it may take.
        limit: Duration,
    },
    /// The answer to the commit was lost, and the ledger did not answer later questions about it either. The
    /// executor goes on asking. What the job does now does not change how its firing ends.
    #[error("whether the transaction has committed is not known yet")]
    Unknown(#[source] Box<dyn Error + Send + Sync>),
    /// The database refused or did not answer: nothing was committed.
    #[error(transparent)]
    Ledger(Box<dyn Error + Send + Sync>),
}

impl From<LedgerError> for EffectError {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error.into())
    }
}

/// The one commit that a run may make.
#[derive(Clone, Debug)]
pub struct Effect {
    effects: Arc<dyn Effects>,
    terms: EffectTerms,
    stage: Arc<Mutex<Stage>>,
}

/// The stage of the run's one commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Idle,
    Open,
    /// COMMIT was sent or is about to be sent, and its result is not known.
    Committing,
    Committed,
}

/// The text for the ledger's `output` column.
type Output = Arc<Mutex<Option<String>>>;

impl Effect {
    /// For the run that `terms` name.
    #[must_use]
    pub fn new(effects: Arc<dyn Effects>, terms: EffectTerms) -> Self {
        Self { effects, terms, stage: Arc::new(Mutex::new(Stage::Idle)) }
    }

    /// Opens the transaction; `output` is read when it commits.
    pub(crate) async fn begin(&self, output: Output) -> Result<Transaction, EffectError> {
        self.open()?;
        // From here on, dropping `transaction` sets the stage back to idle.
        let mut transaction = Transaction { work: None, effect: self.clone(), output };
        loop {
            match self.effects.begin(&self.terms).await {
                Ok(None) => return Err(EffectError::TakenOver),
                Ok(work) => transaction.work = work,
                // Nothing has been done yet, so trying again is safe. A short outage of the database then does
                // not cost the run its attempt.
                Err(error) if error.is_unavailable() && !self.terms.left().is_zero() => {
                    tokio::time::sleep(RETRY_PAUSE).await;
                    continue;
                }
                Err(error) => return Err(error.into()),
            }
            return Ok(transaction);
        }
    }

    /// Whether COMMIT was sent: from then on our own commit may have ended the run in the ledger.
    pub(crate) fn is_sent(&self) -> bool {
        matches!(*self.stage(), Stage::Committing | Stage::Committed)
    }

    /// Whether the run has committed. Asks the ledger only if the run itself does not know.
    pub(crate) async fn is_committed(&self) -> Result<bool, LedgerError> {
        let stage = *self.stage();
        if stage != Stage::Committing {
            return Ok(stage == Stage::Committed);
        }
        let committed = self.effects.committed(self.terms.run).await?;
        self.set(if committed { Stage::Committed } else { Stage::Idle });
        Ok(committed)
    }

    fn open(&self) -> Result<(), EffectError> {
        let mut stage = self.stage();
        match *stage {
            Stage::Idle => {
                *stage = Stage::Open;
                Ok(())
            }
            Stage::Open => Err(EffectError::Open),
            Stage::Committing | Stage::Committed => Err(EffectError::Ended),
        }
    }

    fn set(&self, stage: Stage) {
        *self.stage() = stage;
    }

    fn stage(&self) -> std::sync::MutexGuard<'_, Stage> {
        self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// After a commit without an answer: asks until the ledger says whether it has happened, or until the run's
    /// time is over.
    async fn confirm(&self) -> Result<bool, LedgerError> {
        loop {
            match self.is_committed().await {
                Err(_) if !self.terms.left().is_zero() => tokio::time::sleep(RETRY_PAUSE).await,
                answer => return answer,
            }
        }
    }
}

/// An open transaction in the ledger's database. [`commit`](Self::commit) also ends the firing as succeeded. If
/// it is dropped without a commit, the connection is closed and everything is rolled back.
///
/// Do not send COMMIT or ROLLBACK yourself (a nested transaction of the client is fine: it is a savepoint). In
/// PostgreSQL at most half of the job's ttl may pass between two statements; then the server ends the
/// transaction, because its owner may be frozen. In SQLite every other writer waits for the transaction, so it
/// may last a third of the shortest ttl, and two seconds at most.
#[derive(Debug)]
pub struct Transaction {
    work: Option<Box<dyn Work>>,
    effect: Effect,
    output: Output,
}

impl Transaction {
    /// The connection, where the ledger is in PostgreSQL.
    ///
    /// # Errors
    /// [`EffectError::OtherDatabase`] where it is in SQLite.
    pub fn postgres(&mut self) -> Result<&mut PgConnection, EffectError> {
        let connection = self.work.as_mut().and_then(|work| work.postgres());
        connection.unwrap_or(Err(EffectError::OtherDatabase { found: "SQLite" }))
    }

    /// The connection, where the ledger is in SQLite.
    ///
    /// # Errors
    /// [`EffectError::OtherDatabase`] where it is in PostgreSQL.
    pub fn sqlite(&mut self) -> Result<&mut SqliteConnection, EffectError> {
        let connection = self.work.as_mut().and_then(|work| work.sqlite());
        connection.unwrap_or(Err(EffectError::OtherDatabase { found: "PostgreSQL" }))
    }

    /// Commits the work and ends the firing as succeeded, both or neither. When it returns `Ok` the
    /// firing has succeeded, whatever the job does or returns afterwards.
    ///
    /// # Errors
    /// [`EffectError::Unknown`] when it is not known yet whether it committed. Every other error means that
    /// nothing was committed.
    ///
    /// # Cancel safety
    /// If it is dropped midway, it may or may not have committed. The executor asks the ledger.
    pub async fn commit(mut self) -> Result<(), EffectError> {
        let Some(mut work) = self.work.take() else { return Err(EffectError::Ended) };
        let output = self.output.lock().unwrap_or_else(PoisonError::into_inner).clone();
        work.settle(&self.effect.terms, output).await?;
        self.effect.set(Stage::Committing);
        let answer = work.commit().await;
        let Err(lost) = answer else {
            self.effect.set(Stage::Committed);
            return Ok(());
        };
        match self.effect.confirm().await {
            Ok(true) => Ok(()),
            Ok(false) => Err(lost.into()),
            Err(silence) => Err(EffectError::Unknown(silence.into())),
        }
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        // The connection first: its locks must be gone before the next transaction may begin.
        self.work = None;
        let mut stage = self.effect.stage();
        if *stage == Stage::Open {
            *stage = Stage::Idle;
        }
    }
}

/// An open transaction of one database. Dropped, it is rolled back.
pub trait Work: fmt::Debug + Send + 'static {
    /// The connection, if the ledger is in PostgreSQL.
    fn postgres(&mut self) -> Option<Result<&mut PgConnection, EffectError>>;

    /// The connection, if the ledger is in SQLite.
    fn sqlite(&mut self) -> Option<Result<&mut SqliteConnection, EffectError>>;

    /// The last statement: ends the run, if it is still ours to end.
    fn settle<'a>(
        &'a mut self,
        terms: &'a EffectTerms,
        output: Option<String>,
    ) -> BoxFuture<'a, Result<(), EffectError>>;

    /// Commits. After an error it is not known whether it has committed.
    fn commit(self: Box<Self>) -> Answer<'static, ()>;
}

/// Begins a transaction in a way that the client counts it. A transaction that the job nests in it is then a
/// savepoint, and its end does not end ours.
///
/// The future is boxed, because the compiler cannot infer that it is `Send`.
pub(super) fn begin<'c, DB: Database>(
    connection: &'c mut DB::Connection,
    how: &'static str,
) -> BoxFuture<'c, Result<(), sqlx::Error>> {
    Box::pin(<DB::TransactionManager as TransactionManager>::begin(connection, Some(how.into_sql_str())))
}

/// Commits what [`begin`] began.
pub(super) fn commit<DB: Database>(
    connection: &mut DB::Connection,
) -> BoxFuture<'_, Result<(), sqlx::Error>> {
    Box::pin(<DB::TransactionManager as TransactionManager>::commit(connection))
}
