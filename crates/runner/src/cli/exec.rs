//! `runner exec JOB`: one firing, now, in the foreground, through both layers.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use chrono::{DurationRound, TimeDelta};

use super::{BAD_CONFIG, FAILED, STUCK, complain, complain_with_causes, logging};
use crate::config::Config;
use crate::executor::{Fate, Ticket};
use crate::firing::{Firing, Origin, State};
use crate::ledger::{Ending, Settled};
use crate::lifecycle::{Drain, Signals};
use crate::registry::{BoundJob, Registry};
use crate::runner::{Engine, StartError, Vitals};
use crate::runtimes::Runtimes;
use crate::upkeep::registrations;

/// How long the second signal waits for a run that cannot be stopped.
const PARTING: Duration = Duration::from_secs(1);

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
    let drain = Drain::default();
    let fate = Runtimes::start([&**job]).map_err(StartError::from).and_then(|runtimes| {
        runtimes.run(async |homes| {
            let mut signals = Signals::listen()?;
            let engine = Engine::open(config, homes, drain.clone(), &Vitals::default(), &mut signals).await?;
            engine.opened.upkeep.register(&registrations(std::iter::once(job))).await?;
            Ok(walk(&engine, job, signals).await)
        })
    });
    match fate {
        Ok(_) if drain.is_stuck() => ExitCode::from(STUCK),
        Ok(Some(fate)) => tell(&fate, out),
        Ok(None) => {
            complain(&"left behind: the run did not end; a replica takes over when its lease is over");
            ExitCode::from(FAILED)
        }
        Err(error) => {
            complain_with_causes(&error);
            ExitCode::from(FAILED)
        }
    }
}

/// The firing's fate; none if the run ends neither by itself nor when asked to, and ends with this process.
async fn walk(engine: &Engine, job: &BoundJob, mut signals: Signals) -> Option<Fate> {
    let now = engine.executor.pulse.now();
    let firing = Firing {
        job: job.spec.name.clone(),
        scheduled_at: now.duration_trunc(TimeDelta::milliseconds(1)).unwrap_or(now),
        shard: 0,
        trigger_key: uuid::Uuid::new_v4().to_string(),
        origin: Origin::Manual,
    };
    let walk = engine.executor.execute(job, Ticket::Fresh(firing));
    tokio::pin!(walk);
    loop {
        tokio::select! {
            biased;
            fate = &mut walk => return Some(fate),
            () = engine.drain.stuck() => return None,
            // What waits for the ledger or the lock leaves off now, and can still say how far it came.
            () = engine.drain.abandoning() => return tokio::time::timeout(PARTING, &mut walk).await.ok(),
            // Someone waits at the terminal: the first signal stops the run, the next one us.
            () = signals.next() => {
                if engine.drain.is_closing() {
                    engine.drain.abandon();
                }
                engine.drain.interrupt();
            }
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
        Fate::Skipped("overlap") => "skipped: the job is running elsewhere".to_owned(),
        Fate::Skipped("paused") => "skipped: the job is paused".to_owned(),
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
