//! What a user writes: the `Job` trait, what a run is handed, and how it ends.

mod context;
mod error;
mod stop;

use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;

pub use context::{ContextParts, JobContext};
pub use error::JobError;
pub use stop::{Cancel, Licence};

/// Work that runs when a job fires.
///
/// ```
/// use runner::{Job, JobContext, JobError};
///
/// struct Reconcile;
///
/// impl Job for Reconcile {
///     async fn run(&self, ctx: &JobContext) -> Result<(), JobError> {
///         println!("matching orders up to {}", ctx.scheduled_at());
///         Ok(())
///     }
/// }
/// ```
pub trait Job: Send + Sync + 'static {
    /// Does the work of one firing.
    ///
    /// # Errors
    /// [`JobError::retry`] (what `?` makes of any error) when another attempt may help,
    /// [`JobError::fail`] when it cannot.
    ///
    /// # Cancel safety
    /// The future is dropped when the run is cancelled and does not end by itself within the job's
    /// `kill_grace`; watch [`JobContext::cancelled`] to end in order.
    fn run(&self, ctx: &JobContext) -> impl Future<Output = Result<(), JobError>> + Send;
}

/// [`Job`] without its type: what the registry keeps.
pub trait ErasedJob: Send + Sync + 'static {
    /// Does the work of one firing, owning what it needs.
    fn run_owned(self: Arc<Self>, ctx: JobContext) -> BoxFuture<'static, Result<(), JobError>>;
}

impl<J: Job> ErasedJob for J {
    fn run_owned(self: Arc<Self>, ctx: JobContext) -> BoxFuture<'static, Result<(), JobError>> {
        Box::pin(async move { self.run(&ctx).await })
    }
}
