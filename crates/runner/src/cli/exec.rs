//! `runner exec JOB`: runs one firing now, in the foreground, through the lock and the ledger.

use std::io::{self, Write};

use super::error::CliError;
use super::invocation::Invocation;
use super::logging::{self, tell};
use crate::engine::StartError;
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
    pub(super) fn run(&self, invocation: &Invocation<'_>) -> Result<(), CliError> {
        let config = invocation.config()?;
        logging::start(&config.log).map_err(StartError::from)?;
        let jobs = invocation.registry.bind(&config)?;
        let Some(job) = jobs.iter().find(|job| job.spec.name.as_str() == self.job) else {
            return Err(CliError::unknown_job(&self.job, &config));
        };
        let executed = exec(&config, job)?;
        // The log lines of the run come before its output.
        logging::finish();
        match executed {
            Executed::Ended(fate) => show(&fate, &mut io::stdout()),
            Executed::LeftBehind => {
                tell(&"left behind: the run did not end; a replica takes over when its lease is over");
                Err(CliError::Told)
            }
            Executed::Stuck => Err(CliError::Stuck),
        }
    }
}

/// Prints the output of the run, and says how the firing ended unless it succeeded.
fn show(fate: &Fate, out: &mut dyn Write) -> Result<(), CliError> {
    if let Fate::Ran { output: Some(output), .. } = fate
        && let Err(error) = write!(out, "{output}").and_then(|()| out.flush())
    {
        tell(&format!("error: could not show the output: {error}"));
    }
    match complaint(fate) {
        None => Ok(()),
        Some(complaint) => {
            tell(&complaint);
            Err(CliError::Told)
        }
    }
}

/// What is told about a firing; nothing if it succeeded.
fn complaint(fate: &Fate) -> Option<String> {
    let told = match fate {
        Fate::Ran { settled: None, .. } => "interrupted before the result could be recorded".to_owned(),
        Fate::Ran { settled: Some(Settled::Fenced), .. } => {
            "lost: another replica took the run over".to_owned()
        }
        Fate::Ran { settled: Some(Settled::Recorded), verdict, .. } => {
            let error = verdict.error.as_deref().unwrap_or("no reason was given");
            match &verdict.ending {
                Ending::Terminal { state: State::Succeeded, .. } => return None,
                Ending::Terminal { state, .. } => format!("{state}: {error}"),
                Ending::Requeue { reason, .. } => {
                    format!("{error}; queued again ({reason}), a replica will run it")
                }
            }
        }
        Fate::Skipped(Reason::Overlap) => "skipped: the job is running elsewhere".to_owned(),
        Fate::Skipped(Reason::Paused) => "skipped: the job is paused".to_owned(),
        Fate::Skipped(reason) => format!("skipped: {reason}"),
        Fate::Drained => "stopped before it began".to_owned(),
        Fate::LetGo => {
            "gave up: the lock was held for a whole ttl, or the ledger did not answer in time".to_owned()
        }
        Fate::Elsewhere => "did not run: another replica has this firing".to_owned(),
        Fate::Waiting => "queued: a replica will run it".to_owned(),
        Fate::Refused => "did not run: the ledger takes no row for this firing".to_owned(),
    };
    Some(told)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rules::Verdict;

    fn ran(ending: Ending, settled: Option<Settled>) -> Fate {
        let verdict = Verdict { ending, crashed: false, error: Some("exit status 3".to_owned()) };
        Fate::Ran { verdict, settled, output: Some("half done\n".to_owned()) }
    }

    fn ended(state: State) -> Ending {
        Ending::Terminal { state, reason: None }
    }

    #[test]
    fn exec_succeeds_only_when_the_ledger_has_recorded_a_success() {
        let recorded = Some(Settled::Recorded);
        let mut out = Vec::new();
        assert!(show(&ran(ended(State::Succeeded), recorded), &mut out).is_ok());
        assert_eq!(out, b"half done\n");
        let soon = Duration::from_secs(1);
        let requeue = Ending::Requeue { reason: Reason::Retry, due_in: soon, expires_in: soon };
        for (fate, told) in [
            (ran(ended(State::Succeeded), None), "interrupted before the result could be recorded"),
            (ran(ended(State::Succeeded), Some(Settled::Fenced)), "lost: another replica took the run over"),
            (ran(ended(State::Failed), recorded), "failed: exit status 3"),
            (ran(requeue, recorded), "exit status 3; queued again (retry), a replica will run it"),
            (Fate::Skipped(Reason::Overlap), "skipped: the job is running elsewhere"),
            (Fate::Skipped(Reason::LockUnavailable), "skipped: lock_unavailable"),
        ] {
            assert_eq!(complaint(&fate).as_deref(), Some(told));
            assert!(matches!(show(&fate, &mut Vec::new()), Err(CliError::Told)), "{fate:?}");
        }
    }
}
