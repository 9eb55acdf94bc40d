//! `runner exec JOB`: runs one firing now, in the foreground, through the lock and the ledger.

use std::io::{self, Write};

use super::failure::{Failure, tell};
use super::invocation::Invocation;
use super::logging;
use crate::engine::executor::Fate;
use crate::firing::{Reason, State};
use crate::ledger::{Ending, Settled};
use crate::operate::{Executed, exec};

/// Runs a job once, now, in the foreground, with the lock and the ledger
#[derive(Debug, clap::Args)]
pub(super) struct ExecArgs {
    /// The name of the job
    job: String,
}

impl ExecArgs {
    pub(super) fn run(&self, invocation: &Invocation<'_>) -> Result<(), Failure> {
        let config = invocation.config()?;
        logging::start(&config.log);
        let jobs = invocation.registry.bind(&config)?;
        let Some(job) = jobs.iter().find(|job| job.spec.name.as_str() == self.job) else {
            return Err(Failure::unknown_job(&self.job, &config));
        };
        match exec(&config, job)? {
            Executed::Ended(fate) => show(&fate, &mut io::stdout()),
            Executed::LeftBehind => {
                tell(&"left behind: the run did not end; a replica takes over when its lease is over");
                Err(Failure::Told)
            }
            Executed::Stuck => Err(Failure::Stuck),
        }
    }
}

/// Prints the output of the run, and says what became of the firing unless it succeeded.
fn show(fate: &Fate, out: &mut dyn Write) -> Result<(), Failure> {
    let message = match fate {
        Fate::Ran { verdict, settled, output, .. } => {
            if let Some(output) = output
                && let Err(error) = write!(out, "{output}").and_then(|()| out.flush())
            {
                tell(&format!("error: could not show the output: {error}"));
            }
            let error = verdict.error.as_deref().unwrap_or("no reason was given");
            match (settled, &verdict.ending) {
                (None, _) => "interrupted before the result could be recorded".to_owned(),
                (Some(Settled::Fenced), _) => "lost: another replica took the run over".to_owned(),
                (Some(Settled::Recorded), Ending::Terminal { state: State::Succeeded, .. }) => return Ok(()),
                (Some(Settled::Recorded), Ending::Terminal { state, .. }) => format!("{state}: {error}"),
                (Some(Settled::Recorded), Ending::Requeue { reason, .. }) => {
                    format!("{error}; queued again ({reason}), a replica will run it")
                }
            }
        }
        Fate::Skipped(Reason::Overlap) => "skipped: the job is running elsewhere".to_owned(),
        Fate::Skipped(Reason::Paused) => "skipped: the job is paused".to_owned(),
        Fate::Skipped(reason) => format!("skipped: {reason}"),
        Fate::Drained => "stopped before it began".to_owned(),
        Fate::LetGo => "gave up: the job's lock was held for a whole ttl".to_owned(),
        Fate::Elsewhere => "did not run: another replica has this firing".to_owned(),
        Fate::Waiting => "queued: a replica will run it".to_owned(),
        Fate::Refused => "did not run: the ledger accepts no firing of this job at this instant".to_owned(),
    };
    tell(&message);
    Err(Failure::Told)
}
