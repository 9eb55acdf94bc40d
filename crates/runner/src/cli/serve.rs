//! `runner --config jobs.toml`: fires the jobs until told to stop.

use std::process::ExitCode;

use super::{BAD_CONFIG, FAILED, STUCK, complain, complain_with_causes, logging};
use crate::config::Config;
use crate::lifecycle::Drain;
use crate::registry::Registry;
use crate::runner::{StartError, replica};
use crate::runtimes::Runtimes;

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
    let drain = Drain::default();
    let served = Runtimes::start(jobs.iter().map(|job| &**job))
        .map_err(StartError::from)
        .and_then(|runtimes| runtimes.run(async |homes| replica(config, &jobs, homes, drain.clone()).await));
    match served {
        Ok(_) if drain.is_stuck() => ExitCode::from(STUCK),
        Ok(true) | Err(StartError::Stopped) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(FAILED),
        Err(error) => {
            complain_with_causes(&error);
            ExitCode::from(FAILED)
        }
    }
}
