//! What the test of a job needs: a context to hand it, and a way to ask it to stop.
//!
//! ```
//! use runner::testing::{TestContext, stop};
//! use runner::{Cause, Job, JobContext, JobError};
//!
//! struct Bill;
//!
//! impl Job for Bill {
//!     async fn run(&self, ctx: &JobContext) -> Result<(), JobError> {
//!         if ctx.is_cancelled() {
//!             return Err(JobError::retry("stopped before the first bill"));
//!         }
//!         ctx.set_output(format!("attempt {}", ctx.attempt()));
//!         Ok(())
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let ctx = TestContext::new("bill").attempt(2).build();
//! assert!(Bill.run(&ctx).await.is_ok());
//! assert_eq!(ctx.output().as_deref(), Some("attempt 2"));
//!
//! let ctx = TestContext::new("bill").build();
//! stop(&ctx, Cause::Timeout);
//! assert!(Bill.run(&ctx).await.is_err());
//! # }
//! ```

use chrono::{DateTime, Utc};

use crate::firing::{Cause, Fence, Firing, JobName, Origin};
use crate::job::{ContextParts, JobContext};

/// A context in the making. What is not said is: the first attempt of a firing of the schedule, due at the
/// beginning of 2026, unsharded, in the namespace `test`, with a fence of 1, five seconds of `kill_grace`, a
/// deadline and a licence that never end, and no ledger to open a transaction in.
#[derive(Clone, Debug)]
pub struct TestContext(ContextParts);

impl TestContext {
    /// A context of a run of `job`.
    ///
    /// # Panics
    /// When no job can have this name.
    #[must_use]
    #[expect(clippy::panic, reason = "a test fails by panicking")]
    pub fn new(job: &str) -> Self {
        let job = JobName::new(job).unwrap_or_else(|error| panic!("{error}"));
        let scheduled_at = DateTime::from_timestamp(1_767_225_600, 0).unwrap_or_default();
        let (trigger_key, origin) = (String::new(), Origin::Schedule);
        Self(ContextParts::new(Firing { job, scheduled_at, shard: 0, trigger_key, origin }))
    }

    /// Sets [`JobContext::scheduled_at`].
    #[must_use]
    pub fn scheduled_at(mut self, at: DateTime<Utc>) -> Self {
        self.0.firing.scheduled_at = at;
        self
    }

    /// Sets [`JobContext::shard`], from 0, and [`JobContext::shards`].
    #[must_use]
    pub fn shard(mut self, shard: u32, of: u32) -> Self {
        (self.0.firing.shard, self.0.shards) = (shard, of);
        self
    }

    /// Sets [`JobContext::attempt`], from 1.
    #[must_use]
    pub fn attempt(mut self, attempt: u32) -> Self {
        self.0.attempt = attempt;
        self
    }

    /// Sets [`JobContext::origin`].
    #[must_use]
    pub fn origin(mut self, origin: Origin) -> Self {
        self.0.firing.origin = origin;
        self
    }

    /// Sets [`JobContext::fence`].
    #[must_use]
    pub fn fence(mut self, fence: i64) -> Self {
        self.0.fence = Fence(fence);
        self
    }

    /// The context. Each has a cancellation and an output of its own.
    #[must_use]
    pub fn build(self) -> JobContext {
        JobContext::new(self.0)
    }
}

/// Asks the run that was handed `ctx` to stop, as the runner does. The first cause stays.
pub fn stop(ctx: &JobContext, cause: Cause) {
    ctx.cancel.cancel(cause);
}
