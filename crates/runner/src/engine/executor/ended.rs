//! How a run has ended, before it is judged.

use std::any::Any;
use std::time::Duration;

use tokio::task::JoinError;
use tracing::Span;

use crate::firing::Cause;
use crate::job::JobError;
use crate::ledger::Effect;
use crate::rules::Outcome;

/// A run that has ended: none of its code can act any more.
#[derive(Debug)]
pub(super) struct Ended {
    /// What the code itself did.
    pub(super) outcome: Outcome,
    /// Why it was asked to stop, if it was.
    pub(super) cause: Option<Cause>,
    /// What it left for people.
    pub(super) output: Option<String>,
    /// Whether it has committed a transaction of its own. Such a commit also ends the firing.
    pub(super) effect: Effect,
    pub(super) took: Duration,
    pub(super) span: Span,
}

/// What the task of a run did.
pub(super) fn outcome(joined: Result<Result<(), JobError>, JoinError>) -> Outcome {
    match joined {
        Ok(Ok(())) => Outcome::Succeeded,
        Ok(Err(error)) => Outcome::Failed { retry: error.is_retry(), error: error.to_string() },
        Err(error) if error.is_panic() => Outcome::Panicked(panic_text(&*error.into_panic())),
        Err(_) => Outcome::Dropped,
    }
}

fn panic_text(payload: &(dyn Any + Send)) -> String {
    payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".into())
}
