//! `runner --config jobs.toml`: fires the jobs until a signal stops it.

use std::sync::Arc;

use futures_util::future::OptionFuture;
use tokio::sync::watch;

use super::error::CliError;
use super::invocation::Invocation;
use super::logging;
use crate::admin::{Admin, Readiness};
use crate::clock::SystemClock;
use crate::config::Config;
use crate::engine::job_set::SharedJobs;
use crate::engine::lifecycle::Signals;
use crate::engine::runtimes::{Homes, Runtimes};
use crate::engine::{Engine, JobSet, Site, StartError};
use crate::telemetry;

/// Runs a replica.
pub(super) fn run(invocation: &Invocation<'_>) -> Result<(), CliError> {
    let config = invocation.config()?;
    logging::start(&config.log).map_err(StartError::from)?;
    for warning in &config.warnings {
        tracing::warn!(key = warning.key(), "{}", warning.message());
    }
    let jobs = invocation.registry.bind(&config)?;
    let (_replace, jobs) = watch::channel(Arc::new(JobSet::new(jobs, config.lock.ttl)));
    let site = Site::new(Arc::new(SystemClock::default()), Arc::default());
    let runtimes = Runtimes::start(&jobs.borrow()).map_err(StartError::from)?;
    match runtimes.run(async |homes| serve(&config, jobs, homes, &site).await) {
        Ok(_) if site.drain.is_stuck() => Err(CliError::Stuck),
        Ok(true) | Err(CliError::Start(StartError::Stopped)) => Ok(()),
        // The log says which part of the replica failed.
        Ok(false) => Err(CliError::Told),
        Err(error) => Err(error),
    }
}

/// Fires `jobs` until the replica has drained. Says whether it ended in order.
///
/// `[admin]` is served from before the first question to the ledger until after the last run: a supervisor
/// that restarts what does not answer must not restart a replica that waits.
async fn serve(config: &Config, jobs: SharedJobs, homes: Homes, site: &Site) -> Result<bool, CliError> {
    let mut signals = Signals::listen().map_err(StartError::from)?;
    let last_tick = Arc::default();
    let readiness = Readiness { site: site.clone(), last_tick: Arc::clone(&last_tick) };
    let admin = match &config.admin {
        Some(settings) => Some(Admin::bind(settings, readiness).await?),
        None => None,
    };
    telemetry::begin(jobs.borrow().iter().map(|job| &job.spec.name));
    let replica = async {
        let engine = Engine::open(config, homes, site, &mut signals).await?;
        Ok(engine.serve(config, jobs, &last_tick, signals).await)
    };
    tokio::select! {
        ended = replica => ended,
        Some(never) = OptionFuture::from(admin.map(Admin::serve)) => match never {},
        never = logging::report_lost_lines() => match never {},
    }
}
