//! Both layers as the configuration names them: checked, and opened.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use lockcore::{InvalidUrl, LockBackend, OpenOptions};
use tokio::runtime::Handle;
use tracing::warn;

use super::job_set::shortest_ttl;
use crate::clock::Clock;
use crate::config::{Config, ConfigErrors};
use crate::ledger::{self, LedgerError, LedgerOptions, Opened};

/// How the ledger of this configuration is opened.
pub(crate) fn ledger_options(config: &Config) -> LedgerOptions {
    let shortest = shortest_ttl_of(config);
    LedgerOptions {
        url: config.ledger.url.expose().to_owned(),
        namespace: config.runner.namespace.clone(),
        timeout: Duration::from_millis(1_500).min(shortest / 4),
        pooler: config.ledger.pooler,
        migrate: config.ledger.migrate,
    }
}

/// What is wrong with the addresses of both layers, as far as their clients see without asking a
/// server: a start would fail on it, so it is said with everything else that is wrong with the file.
pub(crate) fn refused_addresses(config: &Config) -> Option<ConfigErrors> {
    let ledger = ledger::check_url(&ledger_options(config)).err().map(|error| {
        let mut message = error.to_string();
        if let Some(cause) = innermost(&error) {
            message.push_str(&format!(": {cause}"));
        }
        config.problem_at("ledger.url", message, None)
    });
    let lock = config.lock.url.as_ref().and_then(|url| lockcore::check_url(url.expose()).err());
    let lock = lock.map(|error| config.problem_at("lock.url", error.to_string(), None));
    config.errors(ledger.into_iter().chain(lock).collect())
}

fn innermost(error: &dyn Error) -> Option<&dyn Error> {
    let mut cause = error.source();
    while let Some(deeper) = cause.and_then(Error::source) {
        cause = Some(deeper);
    }
    cause
}

pub(super) async fn open_ledger(config: &Config) -> Result<Opened, LedgerError> {
    let mut told = false;
    loop {
        let error = match ledger::open(ledger_options(config)).await {
            Ok(opened) => return Ok(opened),
            Err(error) if error.is_unavailable() => error,
            Err(error) => return Err(error),
        };
        if !told {
            warn!(error = &error as &dyn std::error::Error, "waiting for the ledger");
            told = true;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// The lock's server, or locks of this process where no server is named.
pub(super) fn lock_backend(
    config: &Config,
    clock: &Arc<dyn Clock>,
    keepalive: &Handle,
) -> Result<Arc<dyn LockBackend>, InvalidUrl> {
    let Some(url) = &config.lock.url else {
        return Ok(lockcore::in_process(clock.clone()));
    };
    let shortest = shortest_ttl_of(config);
    let options = OpenOptions::new(Handle::current(), keepalive.clone()).shortest_ttl(shortest);
    lockcore::open(url.expose(), options)
}

fn shortest_ttl_of(config: &Config) -> Duration {
    shortest_ttl(config.jobs.iter().map(|job| job.budget.ttl), config.lock.ttl)
}
