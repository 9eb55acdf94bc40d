//! What every subcommand starts from: the arguments that all of them have, the time, and the ways to the
//! configuration and to the ledger.

use std::path::PathBuf;

use chrono::{DateTime, Utc};

use super::error::CliError;
use crate::config::{Config, Environment};
use crate::engine::{StartError, ledger_options};
use crate::ledger::{self, LedgerError, LedgerOptions, Opened};
use crate::registry::Registry;

/// The file, when neither `--config` nor `RUNNER_CONFIG` names one.
const DEFAULT_FILE: &str = "jobs.toml";

/// One call of the program.
#[derive(Debug)]
pub(super) struct Invocation<'a> {
    /// The kinds of jobs that this binary has.
    pub(super) registry: &'a Registry,
    /// When the program was called.
    pub(super) now: DateTime<Utc>,
    /// The environment of the process.
    pub(super) environment: Environment,
    /// The file that `--config` names.
    pub(super) file: Option<PathBuf>,
}

impl Invocation<'_> {
    /// Reads and checks the configuration. Connects to no server.
    ///
    /// # Errors
    /// [`CliError::Config`] with everything that is wrong; [`CliError::Variable`].
    pub(super) fn config(&self) -> Result<Config, CliError> {
        let file = match &self.file {
            Some(file) => file.clone(),
            None => self.environment.get("RUNNER_CONFIG")?.unwrap_or(DEFAULT_FILE).into(),
        };
        Ok(Config::load(&file, &self.environment, self.registry, &ledger::check_url)?)
    }
}

/// Opens the ledger and asks it a question. It does not migrate the ledger: only `migrate` and a replica
/// that starts may change its tables.
///
/// # Errors
/// [`CliError::Ledger`].
pub(super) fn ask<T>(
    config: &Config,
    question: impl AsyncFnOnce(Opened) -> Result<T, LedgerError>,
) -> Result<T, CliError> {
    wait_for(async {
        let options = LedgerOptions { migrate: false, ..ledger_options(config) };
        question(ledger::open(options).await?).await
    })
}

/// Waits for an answer of the ledger, on this thread.
///
/// # Errors
/// [`CliError::Ledger`]; [`CliError::Start`] when the process cannot wait.
pub(super) fn wait_for<T>(answer: impl Future<Output = Result<T, LedgerError>>) -> Result<T, CliError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(StartError::from)?;
    Ok(runtime.block_on(answer)?)
}
