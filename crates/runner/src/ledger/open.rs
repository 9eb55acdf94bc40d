//! Opening a ledger by its URL.

use std::error::Error;
use std::sync::Arc;

use super::postgres::PostgresLedger;
use super::{
    Answer, Effects, Gaps, Housekeeping, Ledger, LedgerError, LedgerOptions, Operators, Queue, Reader,
    SqliteLedger, Sweeping,
};

/// One ledger, with one field for each kind of client.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Opened {
    /// For the corridor.
    pub ledger: Arc<dyn Ledger>,
    /// For firings that wait.
    pub queue: Arc<dyn Queue>,
    /// For runs whose owner may be gone.
    pub sweeping: Arc<dyn Sweeping>,
    /// For the reconciliation.
    pub gaps: Arc<dyn Gaps>,
    /// For registering, pruning and failovers.
    pub housekeeping: Arc<dyn Housekeeping>,
    /// For people.
    pub operators: Arc<dyn Operators>,
    /// For those who only read.
    pub reader: Arc<dyn Reader>,
    /// For jobs' own transactions.
    pub effects: Arc<dyn Effects>,
}

impl Opened {
    /// All fields from one ledger. Also for a ledger that is implemented elsewhere.
    #[must_use]
    pub fn new<L>(ledger: L) -> Self
    where
        L: Ledger + Queue + Sweeping + Gaps + Housekeeping + Operators + Reader + Effects,
    {
        let ledger = Arc::new(ledger);
        Self {
            ledger: ledger.clone(),
            queue: ledger.clone(),
            sweeping: ledger.clone(),
            gaps: ledger.clone(),
            housekeeping: ledger.clone(),
            operators: ledger.clone(),
            reader: ledger.clone(),
            effects: ledger,
        }
    }
}

/// Opens the ledger that the URL names.
///
/// # Errors
/// [`LedgerError::Unavailable`] while the database is away: try again. [`LedgerError::Unusable`] when the URL
/// or the schema is wrong: trying again cannot help.
///
/// The future is boxed, because the compiler cannot infer that it is `Send`.
pub fn open(options: LedgerOptions) -> Answer<'static, Opened> {
    Box::pin(async move {
        match scheme(&options.url) {
            Some("postgres" | "postgresql") => Ok(Opened::new(PostgresLedger::open(options).await?)),
            Some("sqlite") => Ok(Opened::new(SqliteLedger::open(options).await?)),
            _ => Err(unknown_scheme()),
        }
    })
}

/// Whether [`open`] would take the URL. Asks no server.
///
/// # Errors
/// What is wrong with the URL. The text of the database client may quote a value from the URL's parameters.
pub fn check_url(url: &str) -> Result<(), String> {
    let checked = match scheme(url) {
        Some("postgres" | "postgresql") => PostgresLedger::check_url(url),
        Some("sqlite") => SqliteLedger::check_url(url),
        _ => Err(unknown_scheme()),
    };
    checked.map_err(|error| match &error {
        LedgerError::Unusable { hint, source: Some(cause) } => format!("{hint}: {}", innermost(&**cause)),
        LedgerError::Unusable { hint, source: None } => hint.clone(),
        other => other.to_string(),
    })
}

/// The last cause in the chain. Those above it only repeat that the URL cannot be read.
fn innermost<'a>(error: &'a (dyn Error + 'static)) -> &'a (dyn Error + 'static) {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause
}

/// Applies the migrations that are missing, and names them.
///
/// # Errors
/// As [`open`].
pub fn migrate(options: &LedgerOptions) -> Answer<'_, Vec<String>> {
    Box::pin(async move {
        match scheme(&options.url) {
            Some("postgres" | "postgresql") => PostgresLedger::migrate(options).await,
            Some("sqlite") => SqliteLedger::migrate(options).await,
            _ => Err(unknown_scheme()),
        }
    })
}

fn scheme(url: &str) -> Option<&str> {
    url.split(':').next()
}

fn unknown_scheme() -> LedgerError {
    LedgerError::Unusable { hint: "its URL must begin with postgres: or sqlite:".into(), source: None }
}
