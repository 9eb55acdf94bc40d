//! Opens the lock and the ledger that the configuration names.

use std::sync::Arc;
use std::time::Duration;

use lockcore::{InvalidUrl, LockBackend, OpenOptions};
use tokio::runtime::Handle;
use tracing::warn;

use super::job_set::shortest_ttl;
use crate::clock::Clock;
use crate::config::Config;
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

/// The lock server, or locks inside this process if the configuration names no server.
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
