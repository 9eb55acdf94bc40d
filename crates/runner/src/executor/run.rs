//! Step five: users' code, on a runtime of its own, under everything that may stop it.

use std::any::Any;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tracing::{Instrument, Span, info, info_span};

use super::Executor;
use super::claim::Owned;
use super::hold::Hold;
use super::passage::Passage;
use super::supervise::{Supervision, first_licence};
use crate::job::{Cancel, Cause, ContextParts, JobContext, JobError};
use crate::ledger::{Effect, EffectTerms};
use crate::registry::BoundJob;
use crate::telemetry;

/// How a run came to its end, before anybody judges it.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    /// Why it was asked to stop, if it was.
    pub(super) cause: Option<Cause>,
    pub(super) output: Option<String>,
    /// Whether it has committed a transaction of its own, and with that its end.
    pub(super) effect: Effect,
    pub(super) took: Duration,
    pub(super) span: Span,
}

/// What the code itself did.
#[derive(Debug)]
pub(super) enum Outcome {
    /// It returned.
    Returned(Result<(), JobError>),
    /// It panicked, saying this.
    Panicked(String),
    /// It was dropped after it had not ended within its `kill_grace`.
    Dropped,
}

/// Ends a task when its owner goes away, whatever the reason.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Executor {
    /// Runs the work until it has truly ended: a result is never recorded while it may still act.
    pub(super) async fn run(&self, job: &BoundJob, pass: &Passage, owned: &Owned, hold: &mut Hold) -> Ended {
        let span = info_span!(
            "run",
            job = %job.spec.name,
            scheduled_at = pass.subject(),
            attempt = owned.won.attempt,
            fence = owned.fence().0,
            instance = %self.instance,
        );
        let started = self.clock.boot_now();
        let deadline = started + job.spec.budget.timeout;
        let cancel = Cancel::default();
        let (licence, licensed) = watch::channel(first_licence(&job.spec.budget, owned));
        let terms = EffectTerms {
            run: owned.run(),
            attempt: owned.won.attempt,
            lease: job.spec.budget.ttl,
            deadline,
            clock: self.clock.clone(),
        };
        let effect = Effect::new(self.effects.clone(), terms);
        let context = JobContext::new(ContextParts {
            namespace: self.namespace.clone(),
            firing: pass.firing().clone(),
            shards: job.spec.shards,
            attempt: owned.won.attempt,
            fence: owned.fence(),
            deadline,
            kill_grace: told_grace(job.spec.budget.kill_grace),
            cancel: cancel.clone(),
            licence: licensed,
            effect: Some(effect.clone()),
        });
        let left = context.clone();
        span.in_scope(|| info!("started"));
        if pass.shows_lateness(owned.won.attempt) {
            telemetry::lateness(&job.spec.name, owned.won.started_at - pass.due_at(&job.spec));
        }
        let running = telemetry::running();
        let work = job.work.clone().run_owned(context).instrument(span.clone());
        let mut task = AbortOnDrop(self.homes.of(job).spawn(work));
        let supervision = Supervision {
            executor: self,
            spec: &job.spec,
            owned,
            cancel: &cancel,
            effect: &effect,
            deadline,
            task: task.0.abort_handle(),
        };
        let joined = tokio::select! {
            // What the work returned counts even if something was lost in the same moment: the
            // fence decides whether the ledger takes it.
            biased;
            joined = &mut task.0 => joined,
            never = supervision.watch(hold, licence).instrument(span.clone()) => match never {},
        };
        drop(running);
        let took = self.clock.boot_now().saturating_since(started);
        telemetry::run_duration(&job.spec.name, took);
        Ended { outcome: outcome(joined), cause: cancel.cause(), output: left.output(), effect, took, span }
    }
}

/// What the run is told of its `kill_grace`: a little less, so that what ends itself at the last moment
/// (a command that had to be killed) can still say so before it is dropped.
fn told_grace(kill_grace: Duration) -> Duration {
    kill_grace - (kill_grace / 4).min(Duration::from_millis(500))
}

fn outcome(joined: Result<Result<(), JobError>, JoinError>) -> Outcome {
    match joined {
        Ok(result) => Outcome::Returned(result),
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
