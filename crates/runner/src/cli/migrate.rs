//! `runner migrate`: brings the ledger's tables up to date.

use std::io::{self, Write};

use crate::ledger::{self, LedgerError, LedgerOptions};

/// Applies the ledger's migrations. A replica that starts does it too, unless `ledger.migrate = false`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MigrateArgs {}

/// The tables could not be brought up to date.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MigrateError {
    /// The ledger cannot be used, or does not answer.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Nobody takes what we print.
    #[error("cannot print what was applied")]
    Print(#[from] io::Error),
}

/// Applies what is missing and prints it.
///
/// # Errors
/// [`MigrateError`].
pub(crate) async fn run(options: &LedgerOptions, out: &mut dyn Write) -> Result<(), MigrateError> {
    let applied = ledger::migrate(options).await?;
    if applied.is_empty() {
        writeln!(out, "the ledger is up to date")?;
    }
    for name in applied {
        writeln!(out, "applied {name}")?;
    }
    Ok(out.flush()?)
}
