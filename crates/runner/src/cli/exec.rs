//! `runner exec JOB`: one firing, now, in the foreground, through both layers.

use std::io::Write;
use std::process::ExitCode;

use super::{BAD_CONFIG, FAILED, STUCK, complain, complain_with_causes, logging};
use crate::config::Config;
use crate::engine::executor::Fate;
use crate::firing::{Reason, State};
use crate::ledger::{Ending, Settled};
use crate::operate::{Executed, exec};
use crate::registry::Registry;

/// Runs a job once, now, in the foreground, through both layers.
#[derive(Debug, clap::Args)]
pub(crate) struct ExecArgs {
    /// Which job.
    job: String,
}

/// Runs it; the exit code tells how it ended.
pub(crate) fn run(args: &ExecArgs, config: &Config, registry: &Registry, out: &mut dyn Write) -> ExitCode {
    logging::start(&config.log);
    let jobs = match registry.bind(config) {
        Ok(jobs) => jobs,
        Err(problems) => {
            complain(&problems);
            return ExitCode::from(BAD_CONFIG);
        }
    };
    let Some(job) = jobs.iter().find(|job| job.spec.name.as_str() == args.job) else {
        let names: Vec<_> = jobs.iter().map(|job| job.spec.name.as_str()).collect();
        complain(&format!("error: there is no job {:?}; the file declares {}", args.job, names.join(", ")));
        return ExitCode::from(FAILED);
    };
    match exec(config, job) {
        Ok(Executed::Ended(fate)) => tell(&fate, out),
        Ok(Executed::LeftBehind) => {
            complain(&"left behind: the run did not end; a replica takes over when its lease is over");
            ExitCode::from(FAILED)
        }
        Ok(Executed::Stuck) => ExitCode::from(STUCK),
        Err(error) => {
            complain_with_causes(&error);
            ExitCode::from(FAILED)
        }
    }
}

fn tell(fate: &Fate, out: &mut dyn Write) -> ExitCode {
    let message = match fate {
        Fate::Ran { verdict, settled, output, .. } => {
            if let Some(output) = output
                && let Err(error) = write!(out, "{output}")
            {
                complain(&format!("error: could not show the output: {error}"));
            }
            let error = verdict.error.as_deref().unwrap_or("no reason was given");
            match (&verdict.ending, settled) {
                (_, Some(Settled::Fenced)) => "lost: another replica took the run over".to_owned(),
                (_, None) => "interrupted before the result could be recorded".to_owned(),
                (Ending::Terminal { state: State::Succeeded, .. }, _) => return ExitCode::SUCCESS,
                (Ending::Terminal { state, .. }, _) => format!("{state}: {error}"),
                (Ending::Requeue { reason, .. }, _) => {
                    format!("{error}; queued again ({reason}), a replica will run it")
                }
            }
        }
        Fate::Skipped(Reason::Overlap) => "skipped: the job is running elsewhere".to_owned(),
        Fate::Skipped(Reason::Paused) => "skipped: the job is paused".to_owned(),
        Fate::Skipped(reason) => format!("skipped: {reason}"),
        Fate::Drained => "stopped before it began".to_owned(),
        Fate::LetGo => "gave up: the job's lock stayed taken for a whole ttl".to_owned(),
        Fate::Elsewhere | Fate::Waiting | Fate::Refused => {
            "it did not run: the ledger did not take it".to_owned()
        }
    };
    complain(&message);
    ExitCode::from(FAILED)
}
