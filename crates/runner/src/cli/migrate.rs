//! `runner migrate`: brings the ledger's tables up to date.

use std::io::{self, Write};

use super::error::CliError;
use super::invocation::{Invocation, wait_for};
use crate::engine::ledger_options;
use crate::ledger;

/// Applies the migrations that the ledger's database does not have yet
///
/// A replica that starts does this too, unless `ledger.migrate = false`.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct MigrateArgs {}

impl MigrateArgs {
    pub(super) fn run(&self, invocation: &Invocation<'_>) -> Result<(), CliError> {
        let options = ledger_options(&invocation.config()?);
        let applied = wait_for(ledger::migrate(&options))?;
        let mut out = io::stdout();
        if applied.is_empty() {
            writeln!(out, "the ledger is up to date")?;
        }
        for name in applied {
            writeln!(out, "applied {name}")?;
        }
        Ok(())
    }
}
