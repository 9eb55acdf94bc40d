//! `runner --config jobs.toml`: fires the jobs until told to stop.

use std::process::ExitCode;
use std::sync::Arc;

use futures_util::future::OptionFuture;
use tokio::sync::watch;

use super::{BAD_CONFIG, FAILED, STUCK, complain, complain_with_causes, logging};
use crate::admin::{Admin, ListenError, Readiness};
use crate::clock::SystemClock;
use crate::config::Config;
use crate::engine::job_set::SharedJobs;
use crate::engine::lifecycle::Signals;
use crate::engine::runtimes::{Homes, Runtimes};
use crate::engine::{Engine, JobSet, Site, StartError};
use crate::registry::Registry;
use crate::telemetry;

/// Why a replica could not start.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error(transparent)]
    Start(#[from] StartError),
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// Runs a replica.
pub(crate) fn run(config: &Config, registry: &Registry) -> ExitCode {
    logging::start(&config.log);
    for warning in &config.warnings {
        tracing::warn!(key = warning.key(), "{}", warning.message());
    }
    let jobs = match registry.bind(config) {
        Ok(jobs) => jobs,
        Err(problems) => {
            complain(&problems);
            return ExitCode::from(BAD_CONFIG);
        }
    };
    let (_replace, jobs) = watch::channel(Arc::new(JobSet::new(jobs, config.lock.ttl)));
    let site = Site::new(Arc::new(SystemClock::default()), Arc::default());
    let started = Runtimes::start(&jobs.borrow());
    let served = started
        .map_err(|error| ServeError::from(StartError::from(error)))
        .and_then(|runtimes| runtimes.run(async |homes| serve(config, jobs, homes, &site).await));
    match served {
        Ok(_) if site.drain.is_stuck() => ExitCode::from(STUCK),
        Ok(true) | Err(ServeError::Start(StartError::Stopped)) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(error) => {
            complain_with_causes(&error);
            ExitCode::from(FAILED)
        }
    }
}

/// Fires `jobs` until the replica has drained. Says whether it ended in order.
///
/// What `[admin]` serves is there before the ledger is waited for and after the last run has ended:
/// whoever restarts what does not answer must not restart a replica that only waits.
async fn serve(config: &Config, jobs: SharedJobs, homes: Homes, site: &Site) -> Result<bool, ServeError> {
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
    }
}
