//! Constructs the parts of a replica and wires them together.

mod embed;

use std::error::Error;
use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use lockcore::{InvalidRedisUrl, LockBackend, Locks, MemoryBackend, RedisBackend, RedisOptions};
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;
use tracing::{error, info, warn};

use crate::admin::{Admin, ListenError, Readiness};
use crate::clock::{Clock, SystemClock};
use crate::config::{Config, ConfigErrors};
use crate::executor::Executor;
use crate::firing::Instance;
use crate::job::Job;
use crate::ledger::{self, LedgerError, LedgerOptions, Opened};
use crate::lifecycle::{Drain, Signals, run_until_drained};
use crate::pulse::Pulse;
use crate::registry::{BoundJob, Registry};
use crate::runtimes::Homes;
use crate::scheduler::{Heart, LastBeat, Scheduler};
use crate::telemetry;
use crate::upkeep::{Caretaker, prune, registrations};

pub use embed::Parts;

/// How long a run may ignore its cancellation before its replica gives up on itself.
const STUCK_EXIT: Duration = Duration::from_secs(600);

/// The entry of a user's own binary.
///
/// ```no_run
/// # struct Reconcile;
/// # impl runner::Job for Reconcile {
/// #     async fn run(&self, _: &runner::JobContext) -> Result<(), runner::JobError> { Ok(()) }
/// # }
/// #[derive(serde::Deserialize)]
/// struct Params {
///     batch: u32,
/// }
///
/// fn main() -> std::process::ExitCode {
///     runner::Runner::builder().kind("reconcile", |_params: Params| Ok(Reconcile)).main()
/// }
/// ```
#[derive(Debug)]
pub struct Runner(());

impl Runner {
    /// Starts with the kinds that every runner has.
    #[must_use]
    pub fn builder() -> Builder {
        Builder { registry: Registry::stock() }
    }
}

/// Collects a binary's own kinds.
#[derive(Debug)]
pub struct Builder {
    registry: Registry,
}

impl Builder {
    /// Adds a kind: `make` turns a job's `params` into the code that runs it. It is called once for
    /// each job of this kind when the file is loaded, so an error it returns stops the start.
    #[must_use]
    pub fn kind<P, J, F>(mut self, name: &str, make: F) -> Self
    where
        P: DeserializeOwned,
        J: Job,
        F: Fn(P) -> Result<J, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    {
        self.registry.add(name, make);
        self
    }

    /// Reads the command line and does what it says. Owns its runtimes, so it must not be called
    /// from within one.
    #[must_use]
    pub fn main(self) -> ExitCode {
        self.main_from(std::env::args_os())
    }

    /// [`main`](Self::main) with a command line of the caller's own; the first argument is the
    /// program's name.
    #[must_use]
    pub fn main_from(self, args: impl IntoIterator<Item = OsString>) -> ExitCode {
        crate::cli::main(&self.registry, args)
    }
}

/// The parts that the service and `exec` share: both layers, opened, and the corridor between them.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) executor: Arc<Executor>,
    pub(crate) opened: Opened,
    pub(crate) drain: Drain,
    heart: Heart,
    /// Ended when the engine is dropped.
    background: JoinSet<Result<(), String>>,
}

/// Why a replica could not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    #[error("could not open the ledger")]
    Ledger(#[from] LedgerError),
    #[error("could not use the lock's url")]
    Lock(#[from] InvalidRedisUrl),
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("stopped before the ledger answered")]
    Stopped,
    #[error("could not start: {0}")]
    System(#[from] std::io::Error),
}

/// Fires `jobs` until the replica has drained. Says whether it ended in order.
///
/// What `[admin]` serves is there before the ledger is waited for and after the last run has ended:
/// whoever restarts what does not answer must not restart a replica that only waits.
pub(crate) async fn replica(
    config: &Config,
    jobs: &[Arc<BoundJob>],
    homes: Homes,
    drain: Drain,
) -> Result<bool, StartError> {
    let mut signals = Signals::listen()?;
    let vitals = Vitals::default();
    let admin = match &config.admin {
        Some(settings) => Some(Admin::bind(settings, vitals.readiness(&drain)).await?),
        None => None,
    };
    telemetry::begin(jobs.iter().map(|job| &job.spec.name));
    let engine = async {
        let engine = Engine::open(config, homes, drain, &vitals, &mut signals).await?;
        Ok(engine.serve(config, jobs, &vitals, signals).await)
    };
    tokio::select! {
        ended = engine => ended,
        Some(never) = OptionFuture::from(admin.map(Admin::serve)) => match never {},
    }
}

/// What shows how a replica is; there before anything is opened.
#[derive(Debug)]
pub(crate) struct Vitals {
    clock: Arc<dyn Clock>,
    pulse: Arc<Pulse>,
    last_beat: Arc<LastBeat>,
}

impl Default for Vitals {
    fn default() -> Self {
        Self::of(Arc::new(SystemClock::default()))
    }
}

impl Vitals {
    fn of(clock: Arc<dyn Clock>) -> Self {
        Self { pulse: Arc::new(Pulse::new(clock.clone())), clock, last_beat: Arc::default() }
    }

    fn readiness(&self, drain: &Drain) -> Readiness {
        let Self { clock, pulse, last_beat } = self;
        let (clock, pulse, last_beat) = (clock.clone(), pulse.clone(), last_beat.clone());
        Readiness { clock, drain: drain.clone(), pulse, last_beat }
    }
}

impl Engine {
    /// Opens both layers. A ledger that is away is waited for, a lock's server that is away is not:
    /// the row alone still guards.
    pub(crate) async fn open(
        config: &Config,
        homes: Homes,
        drain: Drain,
        vitals: &Vitals,
        signals: &mut Signals,
    ) -> Result<Self, StartError> {
        let ledger = tokio::select! {
            opened = open_ledger(config) => opened?,
            () = signals.next() => return Err(StartError::Stopped),
        };
        let clock = vitals.clock.clone();
        let parts = Parts {
            instance: Instance::new(&host_name(), uuid::Uuid::new_v4()),
            jitter: Arc::default(),
            heart: Heart::Cron,
            locks: lock_backend(config, &clock, &homes.keepalive)?,
            ledger,
            clock,
        };
        tokio::select! {
            biased;
            engine = Self::on(parts, config, homes, drain, vitals) => Ok(engine),
            () = signals.next() => Err(StartError::Stopped),
        }
    }

    /// The corridor between the two layers in `parts`, once the ledger has answered.
    async fn on(parts: Parts, config: &Config, homes: Homes, drain: Drain, vitals: &Vitals) -> Self {
        let Parts { instance, clock, jitter, heart, locks, ledger: opened } = parts;
        let mut background = JoinSet::new();
        let (probing, reader, upkeep) = (vitals.pulse.clone(), opened.reader.clone(), opened.upkeep.clone());
        background.spawn(async move {
            probing.probe(&*reader, &*upkeep).await;
            Ok(())
        });
        // Nothing is planned before the ledger has told its time: this host's clock may be hours ahead,
        // and the plan would then begin hours late.
        vitals.pulse.beating().await;
        let locks = Locks::new(locks, clock.clone(), homes.keepalive.clone());
        let executor = Arc::new(Executor {
            namespace: config.runner.namespace.clone(),
            instance,
            locks: locks.with_jitter(jitter.clone()),
            ledger: opened.ledger.clone(),
            effects: opened.effects.clone(),
            pulse: vitals.pulse.clone(),
            clock,
            jitter,
            permits: Arc::new(Semaphore::new(config.runner.max_concurrent)),
            homes,
            drain: drain.clone(),
            turn: Arc::new(Notify::new()),
            stuck_exit: STUCK_EXIT,
        });
        Self { executor, opened, drain, heart, background }
    }

    /// Fires `jobs` until the replica has drained. Says whether it ended in order.
    async fn serve(
        mut self,
        config: &Config,
        jobs: &[Arc<BoundJob>],
        vitals: &Vitals,
        signals: Signals,
    ) -> bool {
        let firings = TaskTracker::new();
        // Before the ledger knows the jobs: what falls due from then on is ours to fire, not a gap.
        let from = self.executor.pulse.now();
        if let Err(error) = self.opened.upkeep.register(&registrations(jobs.iter())).await {
            // The caretaker goes on trying; until then claims answer that the job is unknown.
            warn!(error = &error as &dyn std::error::Error, "could not register the jobs yet");
        }
        let scheduler = Scheduler::new(
            self.executor.clone(),
            jobs,
            firings.clone(),
            self.drain.clone(),
            vitals.last_beat.clone(),
            self.heart,
            from,
        );
        let caretaker = Caretaker::new(
            self.executor.clone(),
            self.opened.upkeep.clone(),
            jobs,
            firings.clone(),
            config.lock.ttl,
        );
        let (executor, upkeep, retention) =
            (self.executor.clone(), self.opened.upkeep.clone(), config.ledger.retention);
        self.background.spawn(async move { scheduler.run().await.map_err(|error| error.to_string()) });
        self.background.spawn(async move {
            caretaker.run().await;
            Ok(())
        });
        self.background.spawn(async move {
            prune(executor, upkeep, retention).await;
            Ok(())
        });
        info!(instance = %self.executor.instance, jobs = jobs.len(), namespace = %config.runner.namespace, "ready");
        let grace = config.runner.shutdown_grace;
        let parting = jobs.iter().map(|job| job.spec.budget.kill_grace).max().unwrap_or_default();
        let drained =
            run_until_drained(signals, &self.drain, &firings, grace, parting + Duration::from_secs(3));
        let mut in_order = true;
        tokio::pin!(drained);
        loop {
            tokio::select! {
                biased;
                () = &mut drained => break,
                Some(ended) = self.background.join_next() => {
                    if let Some(what) = fault(ended, self.drain.is_closing()) {
                        error!(what, "a part of the replica ended by itself; leaving");
                        in_order = false;
                        self.drain.close();
                    }
                }
            }
        }
        self.background.shutdown().await;
        info!("bye");
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

/// How the ledger of this configuration is opened.
pub(crate) fn ledger_options(config: &Config) -> LedgerOptions {
    let shortest = config.jobs.iter().map(|job| job.budget.ttl).min().unwrap_or(config.lock.ttl);
    LedgerOptions {
        url: config.ledger.url.expose().to_owned(),
        namespace: config.runner.namespace.clone(),
        timeout: Duration::from_millis(1_500).min(shortest / 4),
        pooler: config.ledger.pooler,
        migrate: config.ledger.migrate,
    }
}

/// What is wrong with the addresses of both layers, as far as their clients see without asking a
/// server: a start would fail on it, so it is said with everything else that is wrong with the file.
pub(crate) fn refused_addresses(config: &Config) -> Option<ConfigErrors> {
    let ledger = ledger::check_url(&ledger_options(config)).err().map(|error| {
        let mut message = error.to_string();
        if let Some(cause) = innermost(&error) {
            message.push_str(&format!(": {cause}"));
        }
        config.problem_at("ledger.url", message, None)
    });
    let lock = config.lock.url.as_ref().and_then(|url| RedisBackend::check_url(url.expose()).err());
    let lock = lock.map(|error| config.problem_at("lock.url", error.to_string(), None));
    config.errors(ledger.into_iter().chain(lock).collect())
}

fn innermost(error: &dyn Error) -> Option<&dyn Error> {
    let mut cause = error.source();
    while let Some(deeper) = cause.and_then(Error::source) {
        cause = Some(deeper);
    }
    cause
}

async fn open_ledger(config: &Config) -> Result<Opened, LedgerError> {
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

fn lock_backend(
    config: &Config,
    clock: &Arc<dyn Clock>,
    keepalive: &Handle,
) -> Result<Arc<dyn LockBackend>, StartError> {
    let Some(url) = &config.lock.url else {
        return Ok(Arc::new(MemoryBackend::new(clock.clone())));
    };
    let shortest = config.jobs.iter().map(|job| job.budget.ttl).min().unwrap_or(config.lock.ttl);
    let options = RedisOptions::new(Handle::current(), keepalive.clone()).shortest_ttl(shortest);
    Ok(Arc::new(RedisBackend::new(url.expose(), options)?))
}

fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
