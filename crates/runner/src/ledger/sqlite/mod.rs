//! The ledger in a file: SQLite, for one host.
//!
//! Several processes may share the file. Every write takes its write lock first (`BEGIN IMMEDIATE`),
//! so nothing that was read in the transaction can change before it commits; commits are on the disk
//! when they return (`synchronous = FULL`), since a claim that a power cut takes back is a second run.
//! Times are this host's, taken inside the statements: all processes of a host have the same clock.

mod cells;
mod corridor;
mod effect;
mod fault;
mod gaps;
mod housekeeping;
mod lane;
mod migrations;
mod open;
mod operators;
mod queue;
mod reader;
mod sweeping;
mod view;

use std::fmt::Debug;
use std::future::Future;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sqlx::query::Query;
use sqlx::sqlite::{Sqlite, SqliteArguments, SqliteConnection};

use self::effect::EffectDoor;
use self::fault::Fault;
use self::lane::Lane;
use self::open::FilePlace;
use super::{Answer, LedgerError, LedgerOptions};

type SqliteStatement<'q> = Query<'q, Sqlite, SqliteArguments>;

/// No call gives up sooner: other processes may have many commits before this one's turn.
const LEAST_PATIENCE: Duration = Duration::from_secs(5);

/// The ledger of one namespace in one SQLite file.
#[derive(Debug)]
pub struct SqliteLedger {
    namespace: Arc<str>,
    patience: Duration,
    writer: Arc<Lane>,
    readers: Arc<Lane>,
    effects: EffectDoor,
    _anchor: Mutex<Option<SqliteConnection>>,
}

impl SqliteLedger {
    /// Opens the file that the URL names (`sqlite:<path>`, or `sqlite::memory:` for a ledger that ends
    /// with this value). With `migrate` it is created where it is missing and brought up to date. A
    /// call that has no answer after `timeout`, or 5 s if that is longer, fails.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`] when the file cannot be written, is no ledger, or is one of a newer
    /// program; [`LedgerError::Unavailable`] when another process keeps it from being opened.
    ///
    /// # Cancel safety
    /// Safe to drop and call again.
    pub async fn open(options: LedgerOptions) -> Result<Self, LedgerError> {
        let LedgerOptions { url, namespace, timeout, migrate, .. } = options;
        let patience = timeout.max(LEAST_PATIENCE);
        let opened = FilePlace::parse(&url)?.open(migrate, patience).await?;
        Ok(Self {
            namespace,
            patience,
            writer: opened.writer,
            readers: opened.readers,
            effects: EffectDoor::new(opened.effects, timeout),
            _anchor: Mutex::new(opened.anchor),
        })
    }

    /// Creates the file where it is missing, applies what it lacks, and names that, like `0001_ledger`.
    ///
    /// # Errors
    /// As [`Self::open`].
    ///
    /// # Cancel safety
    /// Safe to drop and call again: each migration is applied as a whole or not at all.
    pub async fn migrate(options: &LedgerOptions) -> Result<Vec<String>, LedgerError> {
        FilePlace::parse(&options.url)?.migrate(LEAST_PATIENCE).await
    }

    pub(super) fn check_url(url: &str) -> Result<(), LedgerError> {
        FilePlace::parse(url).map(drop)
    }

    /// Bounds an operation in time and says what it was about when it fails.
    fn answer<'a, T>(
        &'a self,
        doing: &'static str,
        work: impl Future<Output = Result<T, Fault>> + Send + 'a,
    ) -> Answer<'a, T> {
        let patience = self.patience;
        Box::pin(async move {
            match tokio::time::timeout(patience, work).await {
                Ok(result) => result.map_err(|fault| fault.while_doing(doing)),
                Err(elapsed) => Err(LedgerError::Unavailable { doing, source: elapsed.into() }),
            }
        })
    }
}
