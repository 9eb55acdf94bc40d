//! Runs one firing of a job now, in this process, through both layers.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DurationRound, TimeDelta};

use crate::clock::SystemClock;
use crate::config::Config;
use crate::engine::executor::{Fate, Ticket};
use crate::engine::job_set::registration;
use crate::engine::lifecycle::Signals;
use crate::engine::runtimes::Runtimes;
use crate::engine::{Engine, JobSet, Site, StartError};
use crate::firing::{Firing, Origin};
use crate::registry::BoundJob;

/// How long the second signal waits for a run that cannot be stopped.
const PARTING: Duration = Duration::from_secs(1);

/// How `exec` ended.
#[derive(Debug)]
pub(crate) enum Executed {
    /// The firing has left the corridor.
    Ended(Fate),
    /// The run has ended neither by itself nor when it was asked to stop. It ends with this process.
    LeftBehind,
    /// The run has ignored its cancellation for too long. This process must end.
    Stuck,
}

/// Runs `job` once. It starts its own runtimes, so it must not be called from within one. The first signal
/// asks the run to stop, the second one leaves it behind.
///
/// # Errors
/// [`StartError`] when a layer cannot be opened.
pub(crate) fn exec(config: &Config, job: &Arc<BoundJob>) -> Result<Executed, StartError> {
    let site = Site::new(Arc::new(SystemClock::default()), Arc::default());
    let walked = Runtimes::start(&JobSet::new(vec![job.clone()], config.lock.ttl))?.run(async |homes| {
        let mut signals = Signals::listen()?;
        let engine = Engine::open(config, homes, &site, &mut signals).await?;
        engine.opened.housekeeping.register(&[registration(job)]).await?;
        Ok::<_, StartError>(walk(&engine, job, signals).await)
    })?;
    if site.drain.is_stuck() {
        return Ok(Executed::Stuck);
    }
    Ok(walked.map_or(Executed::LeftBehind, Executed::Ended))
}

/// The firing's fate; `None` if the run is left behind or stuck.
async fn walk(engine: &Engine, job: &BoundJob, mut signals: Signals) -> Option<Fate> {
    let Site { pulse, drain, .. } = &engine.executor.site;
    let now = pulse.now();
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
            () = drain.stuck() => return None,
            // A run that waits for the ledger or the lock gives up now. It has a moment to report its result.
            () = drain.abandoning() => return tokio::time::timeout(PARTING, &mut walk).await.ok(),
            // A person waits at the terminal: the first signal stops the run, the second one this process.
            () = signals.next() => {
                if drain.is_closing() {
                    drain.abandon();
                }
                drain.interrupt();
            }
        }
    }
}
