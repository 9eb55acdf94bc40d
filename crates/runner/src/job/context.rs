//! What a run is handed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chrono::{DateTime, Utc};
use lockcore::BootInstant;
use tokio_util::task::TaskTracker;

use super::stop::{Cancel, Licence};
use crate::capture::tail_of;
use crate::firing::{Cause, Fence, Firing, Origin};
use crate::ledger::{Effect, EffectError, Transaction};

/// The most that a run may leave by [`JobContext::set_output`], in bytes.
const MOST_OUTPUT: usize = 1 << 20;

/// What a run is handed.
#[derive(Clone, Debug)]
pub struct JobContext {
    pub(crate) namespace: Arc<str>,
    pub(crate) firing: Firing,
    pub(crate) shards: u32,
    pub(crate) attempt: u32,
    pub(crate) fence: Fence,
    pub(crate) deadline: BootInstant,
    pub(crate) kill_grace: Duration,
    pub(crate) cancel: Cancel,
    pub(crate) licence: Licence,
    pub(crate) effect: Option<Effect>,
    pub(crate) output: Arc<Mutex<Option<String>>>,
    /// The threads on which the run works. It has not ended while one of them does.
    pub(crate) blocking: TaskTracker,
}

/// What a [`JobContext`] is made of: for the executor, and for tests of a job of your own.
#[derive(Clone, Debug)]
pub struct ContextParts {
    /// Prefix of the idempotency key.
    pub namespace: Arc<str>,
    /// Which firing runs.
    pub firing: Firing,
    /// See [`JobContext::shards`].
    pub shards: u32,
    /// See [`JobContext::attempt`].
    pub attempt: u32,
    /// See [`JobContext::fence`].
    pub fence: Fence,
    /// See [`JobContext::deadline`].
    pub deadline: BootInstant,
    /// See [`JobContext::kill_grace`].
    pub kill_grace: Duration,
    /// What asks the run to stop.
    pub cancel: Cancel,
    /// See [`JobContext::licence`].
    pub licence: Licence,
    /// What [`JobContext::transaction`] opens; without it that is refused.
    pub effect: Option<Effect>,
}

impl ContextParts {
    /// What a test of a job need not care about: the first attempt of `firing`, in the namespace
    /// `test`, unsharded, with a fence of 1, five seconds of `kill_grace`, a deadline and a licence that
    /// never end, and no ledger to open a transaction in.
    #[must_use]
    pub fn new(firing: Firing) -> Self {
        let never = BootInstant::from_boot(Duration::MAX);
        Self {
            namespace: "test".into(),
            firing,
            shards: 1,
            attempt: 1,
            fence: Fence(1),
            deadline: never,
            kill_grace: Duration::from_secs(5),
            cancel: Cancel::default(),
            licence: Licence::endless(),
            effect: None,
        }
    }
}

/// For the project's own tests: a user's crate cannot name the parts.
impl From<ContextParts> for JobContext {
    fn from(parts: ContextParts) -> Self {
        Self::new(parts)
    }
}

impl JobContext {
    /// The context of one run, without output yet.
    #[must_use]
    pub(crate) fn new(parts: ContextParts) -> Self {
        let ContextParts {
            namespace,
            firing,
            shards,
            attempt,
            fence,
            deadline,
            kill_grace,
            cancel,
            licence,
            effect,
        } = parts;
        let output = Arc::default();
        Self {
            namespace,
            firing,
            shards,
            attempt,
            fence,
            deadline,
            kill_grace,
            cancel,
            licence,
            effect,
            output,
            blocking: TaskTracker::new(),
        }
    }

    /// The job's name.
    #[must_use]
    pub fn job(&self) -> &str {
        self.firing.job.as_str()
    }

    /// The nominal instant, UTC: what the run is *for*, however late it runs.
    #[must_use]
    pub fn scheduled_at(&self) -> DateTime<Utc> {
        self.firing.scheduled_at
    }

    /// Which shard this run does, from 0.
    #[must_use]
    pub fn shard(&self) -> u32 {
        self.firing.shard
    }

    /// Into how many shards the job is split.
    #[must_use]
    pub fn shards(&self) -> u32 {
        self.shards
    }

    /// The number of this run of the firing, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.attempt
    }

    /// Why the firing exists.
    #[must_use]
    pub fn origin(&self) -> Origin {
        self.firing.origin
    }

    /// Grows with every claim: a receiver that remembers the highest it saw can refuse the others.
    #[must_use]
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// The same text for every attempt of this firing, different for every other firing.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        self.firing.idempotency_key(&self.namespace)
    }

    /// When the run's `timeout` ends, on the boot clock.
    #[must_use]
    pub fn deadline(&self) -> BootInstant {
        self.deadline
    }

    /// How long the run has to end in order once it is asked to stop.
    #[must_use]
    pub fn kill_grace(&self) -> Duration {
        self.kill_grace
    }

    /// Ends when the run is asked to stop, and says why.
    ///
    /// # Cancel safety
    /// Safe to drop and call again.
    pub async fn cancelled(&self) -> Cause {
        self.cancel.cancelled().await
    }

    /// Whether the run was asked to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancel.cause().is_some()
    }

    /// Until when this run may work, on the boot clock; moves forward while its leases are kept.
    #[must_use]
    pub fn licence(&self) -> Licence {
        self.licence.clone()
    }

    /// Does work that blocks on a thread of its own, and waits for it. The run has not ended while that thread works, also
    /// when the run itself has returned or was dropped: it is not recorded, and no other run of the job begins beside it.
    ///
    /// The work is told to stop by a clone of this context, which it asks for [`is_cancelled`](Self::is_cancelled).
    ///
    /// ```
    /// # use runner::{JobContext, JobError};
    /// # async fn run(ctx: &JobContext, files: Vec<String>) -> Result<(), JobError> {
    /// let told = ctx.clone();
    /// let done: Result<(), String> = ctx
    ///     .spawn_blocking(move || {
    ///         for file in files {
    ///             if told.is_cancelled() {
    ///                 return Err(format!("stopped before {file}"));
    ///             }
    ///             // … compress it …
    ///         }
    ///         Ok(())
    ///     })
    ///     .await;
    /// Ok(done?)
    /// # }
    /// ```
    ///
    /// Threads that a run starts in other ways (`std::thread`, `tokio::task::spawn_blocking`, the pool of a library) are not
    /// known to the runner. Wait for them before `run` returns, and do not rely on being dropped at the timeout.
    ///
    /// # Panics
    /// As the work does: a panic of the work goes on in the run.
    ///
    /// # Cancel safety
    /// The work starts at the first poll. Dropping the future does not stop it.
    pub async fn spawn_blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        match self.blocking.spawn_blocking(work).await {
            Ok(done) => done,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime shuts down, and this task with it.
                Err(_) => std::future::pending().await,
            },
        }
    }

    /// Opens a transaction in the ledger's own database. Committing it also ends the firing as
    /// succeeded, both or neither: however often the work is begun, its effect is committed once.
    ///
    /// ```
    /// # use runner::{JobContext, JobError};
    /// # async fn run(ctx: &JobContext) -> Result<(), JobError> {
    /// let mut tx = ctx.transaction().await?;
    /// // … the work, on the connection that `tx.postgres()?` or `tx.sqlite()?` gives …
    /// tx.commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A run has one such transaction at a time and commits at most one. The output that is set by then
    /// is recorded with it. Waits, within the run's time, for a place among the transactions of this kind
    /// of job and for a database that is away.
    ///
    /// # Errors
    /// [`EffectError`]: the run was taken over or has committed already, or the database is away.
    ///
    /// # Cancel safety
    /// Safe to drop: a transaction that was about to be opened is rolled back.
    pub async fn transaction(&self) -> Result<Transaction, EffectError> {
        match &self.effect {
            Some(effect) => effect.begin(self.output.clone()).await,
            None => Err(EffectError::NotOffered),
        }
    }

    /// What was left by [`set_output`](Self::set_output), if anything was.
    #[must_use]
    pub fn output(&self) -> Option<String> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Leaves text in the ledger's `output` column; the last call counts. Of a text longer than 1 MiB
    /// the end is kept, below a line that says how much is gone: what is too large to be written within
    /// a lease would keep the run from ever being settled. A kind with an `output_limit` of its own goes
    /// by that.
    pub fn set_output(&self, text: impl Into<String>) {
        self.leave(tail_of(text.into(), MOST_OUTPUT));
    }

    /// Ends when no thread works for the run any more. Call it when the run itself has ended.
    pub(crate) async fn threads_ended(&self) {
        self.blocking.close();
        self.blocking.wait().await;
    }

    /// What a kind has kept within a limit that the file sets.
    pub(crate) fn leave(&self, text: String) {
        *self.output.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }
}
