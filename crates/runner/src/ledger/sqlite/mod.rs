//! The ledger in a file: SQLite, for one host.
//!
//! Several processes may share the file. Every write takes the file's write lock first (`BEGIN IMMEDIATE`), so
//! nothing that was read in the transaction can change before it commits. A commit returns when it is on the
//! disk (`synchronous = FULL`): a claim that a power failure could undo would lead to a second run. Times are
//! this host's and are taken inside the statements: all processes of a host have the same clock.

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

use self::effect::EffectSlot;
use self::fault::Fault;
use self::lane::Lane;
use self::open::FilePlace;
use super::{Answer, LedgerError, LedgerOptions};

type SqliteStatement<'q> = Query<'q, Sqlite, SqliteArguments>;

/// The shortest time limit of a call: many commits of other processes may come before it.
const LEAST_PATIENCE: Duration = Duration::from_secs(5);

/// The ledger of one namespace in one SQLite file.
#[derive(Debug)]
pub struct SqliteLedger {
    namespace: Arc<str>,
    patience: Duration,
    writer: Arc<Lane>,
    readers: Arc<Lane>,
    effects: EffectSlot,
    _anchor: Mutex<Option<SqliteConnection>>,
}

impl SqliteLedger {
    /// Opens the file that the URL names (`sqlite:<path>`, or `sqlite::memory:` for a ledger that ends when this
    /// value is dropped). With `migrate`, a missing file is created and an old one is migrated. A call fails if
    /// it has no answer after `timeout`, or after 5 s if that is longer.
    ///
    /// # Errors
    /// [`LedgerError::Unusable`] when the file cannot be written, is not a ledger, or is one of a newer program;
    /// [`LedgerError::Unavailable`] when another process blocks it.
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
            effects: EffectSlot::new(opened.effects, timeout),
            _anchor: Mutex::new(opened.anchor),
        })
    }

    /// Creates the file if it is missing, applies the missing migrations, and returns their names, such as
    /// `0001_ledger`.
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

    /// Gives an operation a time limit, and adds its name to its errors.
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
