//! One executor between a scripted ledger and a scripted lock.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use futures_util::future::BoxFuture;
use lockcore::{BootClock, BootInstant, Jitter, Locks};
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::answers::Log;
use super::ledger::{RUN, ScriptedLedger};
use super::lock::ScriptedLock;
use super::shown;
use crate::clock::Clock;
use crate::config::{Config, Environment};
use crate::engine::Site;
use crate::engine::executor::{Executor, Fate, Ticket};
use crate::engine::lifecycle::Drain;
use crate::engine::runtimes::Homes;
use crate::firing::{Firing, Instance, Origin, Reason, State};
use crate::job::{ErasedJob, JobContext, JobError};
use crate::ledger::{Due, Settled};
use crate::registry::BoundJob;
use crate::rules::Verdict;

/// The ttl and the `kill_grace` of a job that sets none.
pub(super) const TTL: Duration = Duration::from_secs(30);
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// How long the ledger's lease lets a run go on: the ttl, less the margin of trust and the grace.
pub(super) const LICENCE: Duration = Duration::from_millis(30_000 - 305 - 5_000);
/// How long a run may ignore its cancellation before the replica leaves.
pub(super) const STUCK_EXIT: Duration = Duration::from_secs(600);
/// The instant of the fixture's firings, as a lock names it.
pub(super) const SUBJECT: &str = "2027-01-15T08:00:00Z";
/// How a run is recorded that was stopped for a reason that is not the job's.
pub(super) const INTERRUPTED: (State, Option<Reason>) = (State::Queued, Some(Reason::Interrupted));

pub(super) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A host whose timers are those of the runtime, and which can be frozen: its timers do not notice that.
#[derive(Debug)]
pub(super) struct Host {
    log: Log,
    frozen: Mutex<Duration>,
}

impl Host {
    /// When the test began.
    pub(super) const BEGAN: BootInstant = BootInstant::from_boot(Duration::from_secs(1_000));
    pub(super) const WALL: DateTime<Utc> = DateTime::from_timestamp(1_800_000_000, 0).unwrap();

    /// Lets `span` pass without any timer going on.
    pub(super) fn freeze(&self, span: Duration) {
        *self.frozen.lock().unwrap() += span;
    }

    fn since_began(&self) -> Duration {
        self.log.elapsed() + *self.frozen.lock().unwrap()
    }
}

impl BootClock for Host {
    fn boot_now(&self) -> BootInstant {
        Self::BEGAN + self.since_began()
    }
}

impl Clock for Host {
    fn wall_now(&self) -> DateTime<Utc> {
        Self::WALL + TimeDelta::from_std(self.since_began()).unwrap()
    }
}

/// What the code of a run can reach besides its context.
#[derive(Clone)]
pub(super) struct Around {
    pub(super) log: Log,
    pub(super) host: Arc<Host>,
    pub(super) drain: Drain,
}

/// Notes when a run begins, and when nothing of it is left.
struct Worker<F> {
    around: Around,
    work: F,
}

struct Gone(Log);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.note("gone");
    }
}

impl<F, R> ErasedJob for Worker<F>
where
    F: Fn(JobContext, Around) -> R + Send + Sync + 'static,
    R: Future<Output = Result<(), JobError>> + Send + 'static,
{
    fn run_owned(self: Arc<Self>, ctx: JobContext) -> BoxFuture<'static, Result<(), JobError>> {
        Box::pin(async move {
            self.around.log.note("run");
            let _gone = Gone(self.around.log.clone());
            (self.work)(ctx, self.around.clone()).await
        })
    }
}

/// One executor and one job, with all that they meet.
pub(super) struct Corridor {
    pub(super) log: Log,
    pub(super) host: Arc<Host>,
    pub(super) ledger: Arc<ScriptedLedger>,
    pub(super) lock: Arc<ScriptedLock>,
    pub(super) executor: Executor,
    pub(super) job: BoundJob,
}

impl Corridor {
    /// A job with these `settings` (lines of jobs.toml) that does `work`. The ledger answers, and one run has room.
    pub(super) fn new<F, R>(settings: &str, work: F) -> Self
    where
        F: Fn(JobContext, Around) -> R + Send + Sync + 'static,
        R: Future<Output = Result<(), JobError>> + Send + 'static,
    {
        shown::listen();
        let log = Log::begin();
        let host = Arc::new(Host { log: log.clone(), frozen: Mutex::default() });
        let ledger = Arc::new(ScriptedLedger::new(log.clone()));
        let lock = Arc::new(ScriptedLock::new(log.clone(), host.clone()));
        let runtime = Handle::current();
        let jitter = Arc::new(Jitter::from_seed(1));
        let locks = Locks::new(lock.clone(), host.clone(), runtime.clone()).with_jitter(jitter.clone());
        let site = Site::new(host.clone(), jitter);
        let executor = Executor {
            namespace: "test".into(),
            instance: Instance::new("host", Uuid::from_u128(1)),
            locks,
            ledger: ledger.clone(),
            effects: ledger.clone(),
            site: site.clone(),
            permits: Arc::new(Semaphore::new(1)),
            homes: Homes::all_on(&runtime),
            turn: Arc::default(),
            stuck_exit: STUCK_EXIT,
        };
        let around = Around { log: log.clone(), host: host.clone(), drain: site.drain };
        let job = bound(settings, Worker { around, work });
        let corridor = Self { log, host, ledger, lock, executor, job };
        corridor.ledger_answers();
        corridor
    }

    /// A job whose runs succeed at once.
    pub(super) fn succeeding(settings: &str) -> Self {
        Self::new(settings, |_, _| async { Ok(()) })
    }

    /// A job whose runs take `span` and succeed, whether they are asked to stop or not.
    pub(super) fn taking(span: Duration, settings: &str) -> Self {
        Self::new(settings, move |_, _| async move {
            tokio::time::sleep(span).await;
            Ok(())
        })
    }

    /// A job whose runs end only when they are asked to, and then at once.
    pub(super) fn obeying(settings: &str) -> Self {
        Self::new(settings, |ctx, _| async move {
            ctx.cancelled().await;
            Ok(())
        })
    }

    /// A job whose runs end at once, with the error that `error` makes.
    pub(super) fn failing(error: fn() -> JobError, settings: &str) -> Self {
        Self::new(settings, move |_, _| async move { Err(error()) })
    }

    /// The pulse learns that the ledger answers.
    pub(super) fn ledger_answers(&self) {
        self.executor.site.pulse.answered(self.host.boot_now(), self.host.wall_now());
    }

    /// A firing that was due when the test began.
    pub(super) fn firing(&self, origin: Origin) -> Firing {
        let job = self.job.spec.name.clone();
        Firing { job, scheduled_at: Host::WALL, shard: 0, trigger_key: String::new(), origin }
    }

    /// Walks a fresh firing of the schedule.
    pub(super) async fn execute(&self) -> Fate {
        self.execute_fresh(Origin::Schedule).await
    }

    /// Walks a fresh firing.
    pub(super) async fn execute_fresh(&self, origin: Origin) -> Fate {
        self.executor.execute(&self.job, Ticket::Fresh(self.firing(origin))).await
    }

    /// Walks a firing of the schedule that waits in the queue.
    pub(super) async fn execute_queued(&self) -> Fate {
        let reason = Some(Reason::Retry.into());
        let due = Due { id: RUN.id, firing: self.firing(Origin::Schedule), attempt: 1, reason };
        self.executor.execute(&self.job, Ticket::Queued(due)).await
    }

    /// Does `act` at this time of the test, in seconds, while `walk` goes on.
    pub(super) async fn with<T>(&self, walk: impl Future<Output = T>, at: f64, act: impl FnOnce()) -> T {
        let act = async {
            tokio::time::sleep(Duration::from_secs_f64(at).saturating_sub(self.log.elapsed())).await;
            act();
        };
        tokio::join!(walk, act).0
    }

    /// What is asked of the replica's drain.
    pub(super) fn drain(&self) -> &Drain {
        &self.executor.site.drain
    }

    /// Whether the replica takes the ledger for reachable.
    pub(super) fn is_ledger_there(&self) -> bool {
        self.executor.site.pulse.is_beating()
    }

    /// Whether what waits behind the job has been told that it may have its turn.
    pub(super) async fn has_given_turn(&self) -> bool {
        tokio::time::timeout(Duration::ZERO, self.executor.turn.notified()).await.is_ok()
    }
}

fn bound(settings: &str, work: impl ErasedJob) -> BoundJob {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("jobs.toml");
    let text = format!("[jobs.job]\nkind = \"command\"\nparams = {{}}\nevery = \"1h\"\n{settings}\n");
    std::fs::write(&path, text).unwrap();
    let kinds: &[&str] = &["command"];
    let config = Config::load(&path, &Environment::default(), &kinds, &|_| Ok(())).unwrap();
    BoundJob { spec: config.jobs[0].clone(), work: Arc::new(work), stock: true }
}

/// How a firing that ran here was judged, and what the ledger said.
#[track_caller]
pub(super) fn ran(fate: Fate) -> (Verdict, Option<Settled>) {
    let Fate::Ran { verdict, settled, .. } = fate else { panic!("it did not run: {fate:?}") };
    (verdict, settled)
}

/// How a firing that ran here was recorded: state and reason.
#[track_caller]
pub(super) fn recorded(fate: Fate) -> (State, Option<Reason>) {
    let (verdict, settled) = ran(fate);
    assert_eq!(settled, Some(Settled::Recorded));
    verdict.ending.words()
}
