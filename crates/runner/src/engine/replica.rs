//! The parts of a replica, constructed and wired together.

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use lockcore::{InvalidUrl, Jitter, LockBackend, Locks};
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use super::executor::Executor;
use super::job_set::SharedJobs;
use super::layers::{lock_backend, open_ledger};
use super::lifecycle::{Signals, run_until_drained};
use super::queue::{Caretaker, prune};
use super::runtimes::Homes;
use super::scheduler::{LastTick, Scheduler, Ticker};
use super::site::Site;
use crate::clock::Clock;
use crate::config::Config;
use crate::firing::Instance;
use crate::ledger::{LedgerError, Opened};
use crate::telemetry;

/// How long a run may ignore its cancellation before its replica exits.
const STUCK_EXIT: Duration = Duration::from_secs(600);

/// What a replica is made of: its name, its clocks, the lock and the ledger.
#[derive(Clone, Debug)]
pub struct Parts {
    /// The name under which it locks and claims. No two replicas may have the same name.
    pub instance: Instance,
    /// Its clocks.
    pub clock: Arc<dyn Clock>,
    /// The random part of its waits.
    pub jitter: Arc<Jitter>,
    /// What wakes its planner.
    pub ticker: Ticker,
    /// Layer one.
    pub locks: Arc<dyn LockBackend>,
    /// Layer two.
    pub ledger: Opened,
}

/// Both layers, opened, and the corridor between them. A replica and `exec` have this in common.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) executor: Arc<Executor>,
    pub(crate) opened: Opened,
    ticker: Ticker,
    /// Ended when the engine is dropped.
    background: JoinSet<Result<(), String>>,
}

/// Why a replica could not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("could not open the ledger")]
    Ledger(#[from] LedgerError),
    #[error("could not open the locks")]
    Lock(#[from] InvalidUrl),
    #[error("stopped before the ledger answered")]
    Stopped,
    #[error("could not start: {0}")]
    System(#[from] std::io::Error),
}

/// Fires `jobs` on `parts` until `stop` ends, then drains as after a signal. Everything runs on the caller's
/// runtime. Returns whether the replica ended in order.
///
/// # Cancel safety
/// If it is dropped, it fires nothing more. Runs that have started go on until the runtime ends.
pub(crate) async fn embed(
    parts: Parts,
    config: &Config,
    jobs: SharedJobs,
    stop: impl Future<Output = ()>,
) -> bool {
    let site = Site::new(parts.clock, parts.jitter);
    let layers = OpenLayers { instance: parts.instance, locks: parts.locks, ledger: parts.ledger };
    let last_tick = Arc::default();
    let replica = async {
        let homes = Homes::all_on(&Handle::current());
        let engine = Engine::on(layers, config, homes, &site, parts.ticker).await;
        engine.serve(config, jobs, &last_tick, Signals::none()).await
    };
    let stopped = async {
        stop.await;
        site.drain.close();
        pending().await
    };
    tokio::select! {
        biased;
        in_order = replica => in_order,
        never = stopped => never,
    }
}

/// The name of the replica, its lock server and its ledger.
struct OpenLayers {
    instance: Instance,
    locks: Arc<dyn LockBackend>,
    ledger: Opened,
}

impl Engine {
    /// Opens both layers. Waits for a ledger that is away, but not for a lock server: without the lock the row still
    /// guards.
    ///
    /// # Errors
    /// [`StartError`]; a signal ends the wait for the ledger.
    pub(crate) async fn open(
        config: &Config,
        homes: Homes,
        site: &Site,
        signals: &mut Signals,
    ) -> Result<Self, StartError> {
        let ledger = tokio::select! {
            opened = open_ledger(config) => opened?,
            () = signals.next() => return Err(StartError::Stopped),
        };
        let layers = OpenLayers {
            instance: Instance::new(&host_name(), uuid::Uuid::new_v4()),
            locks: lock_backend(config, &site.clock, &homes.keepalive)?,
            ledger,
        };
        tokio::select! {
            biased;
            engine = Self::on(layers, config, homes, site, Ticker::Cron) => Ok(engine),
            () = signals.next() => Err(StartError::Stopped),
        }
    }

    /// The corridor between the two layers, once the ledger has answered.
    async fn on(layers: OpenLayers, config: &Config, homes: Homes, site: &Site, ticker: Ticker) -> Self {
        let OpenLayers { instance, locks, ledger: opened } = layers;
        let mut background = JoinSet::new();
        let (pulse, reader, housekeeping) =
            (site.pulse.clone(), opened.reader.clone(), opened.housekeeping.clone());
        background.spawn(async move {
            pulse.probe(&*reader, &*housekeeping).await;
            Ok(())
        });
        // The plan begins at the ledger's time. This host's clock may be hours ahead, and the plan would then begin
        // hours late.
        site.pulse.beating().await;
        let locks = Locks::new(locks, site.clock.clone(), homes.keepalive.clone());
        let executor = Arc::new(Executor {
            namespace: config.runner.namespace.clone(),
            instance,
            locks: locks.with_jitter(site.jitter.clone()),
            ledger: opened.ledger.clone(),
            effects: opened.effects.clone(),
            site: site.clone(),
            permits: Arc::new(Semaphore::new(config.runner.max_concurrent)),
            homes,
            turn: Arc::new(Notify::new()),
            stuck_exit: STUCK_EXIT,
        });
        Self { executor, opened, ticker, background }
    }

    /// Fires `jobs` until the replica has drained. Returns whether it ended in order.
    pub(crate) async fn serve(
        mut self,
        config: &Config,
        jobs: SharedJobs,
        last_tick: &Arc<LastTick>,
        signals: Signals,
    ) -> bool {
        let Site { pulse, drain, .. } = self.executor.site.clone();
        let firings = TaskTracker::new();
        // Read before the jobs are registered. What falls due after this moment is in the plan, so it is no gap.
        let from = pulse.now();
        let first = jobs.borrow().clone();
        if let Err(error) = self.opened.housekeeping.register(&first.registrations()).await {
            // The caretaker tries again. Until then a claim answers that the job is unknown.
            warn!(error = &error as &dyn std::error::Error, "could not register the jobs yet");
        }
        let scheduler = Scheduler::new(
            self.executor.clone(),
            jobs.clone(),
            firings.clone(),
            last_tick.clone(),
            self.ticker,
            from,
        );
        let caretaker =
            Caretaker::new(self.executor.clone(), self.opened.clone(), jobs.clone(), firings.clone());
        let (executor, housekeeping, retention) =
            (self.executor.clone(), self.opened.housekeeping.clone(), config.ledger.retention);
        let mut replaced = jobs;
        self.background.spawn(async move {
            // The counters of jobs that are added later begin at zero, too.
            while replaced.changed().await.is_ok() {
                telemetry::begin(replaced.borrow_and_update().iter().map(|job| &job.spec.name));
            }
            pending().await
        });
        self.background.spawn(async move { scheduler.run().await.map_err(|error| error.to_string()) });
        self.background.spawn(async move {
            caretaker.run().await;
            Ok(())
        });
        self.background.spawn(async move {
            prune(executor, housekeeping, retention).await;
            Ok(())
        });
        info!(instance = %self.executor.instance, jobs = first.iter().len(), namespace = %config.runner.namespace, "ready");
        let grace = config.runner.shutdown_grace;
        let parting = first.longest_kill_grace();
        let drained = run_until_drained(signals, &drain, &firings, grace, parting + Duration::from_secs(3));
        let mut in_order = true;
        tokio::pin!(drained);
        loop {
            tokio::select! {
                biased;
                () = &mut drained => break,
                Some(ended) = self.background.join_next() => {
                    if let Some(what) = fault(ended, drain.is_closing()) {
                        error!(what, "a part of the replica ended by itself; leaving");
                        in_order = false;
                        drain.close();
                    }
                }
            }
        }
        self.background.shutdown().await;
        info!("stopped");
        in_order
    }
}

/// What is wrong with a background task that has ended, if anything is.
fn fault(ended: Result<Result<(), String>, tokio::task::JoinError>, expected: bool) -> Option<String> {
    match ended {
        Ok(Ok(())) if expected => None,
        Ok(Ok(())) => Some("it returned".into()),
        Ok(Err(error)) => Some(error),
        Err(error) => Some(error.to_string()),
    }
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
