//! Step five: users' code runs on a runtime of its own, and everything that may stop it is watched.

use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tracing::{Instrument, info, info_span, warn};

use super::Executor;
use super::claim::Owned;
use super::ended::{Ended, outcome};
use super::hold::Hold;
use super::passage::Passage;
use super::supervise::{Bounds, Supervision};
use crate::firing::Cause;
use crate::job::{Cancel, ContextParts, JobContext, Licence};
use crate::ledger::{Effect, EffectTerms};
use crate::registry::BoundJob;
use crate::rules::Outcome;
use crate::telemetry;

/// Ends a task when its owner is dropped.
struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Executor {
    /// Runs the work until it has ended. A result is never recorded while the work may still act.
    pub(super) async fn run(&self, job: &BoundJob, pass: &Passage, owned: &Owned, hold: &mut Hold) -> Ended {
        let span = info_span!(
            "run",
            job = %job.spec.name,
            scheduled_at = pass.subject(),
            attempt = owned.won.attempt,
            fence = owned.fence().0,
            instance = %self.instance,
        );
        let bounds = Bounds::of(&job.spec.budget, owned, self.site.clock.boot_now());
        let terms = EffectTerms {
            run: owned.run(),
            attempt: owned.won.attempt,
            lease: job.spec.budget.ttl,
            deadline: bounds.deadline,
            clock: self.site.clock.clone(),
        };
        let effect = Effect::new(self.effects.clone(), terms);
        if bounds.started >= bounds.first_licence {
            // This process was frozen since the claim. Another replica may have the lease by now, so nothing begins.
            span.in_scope(|| warn!("lost: the lease was over before the run could begin"));
            let (outcome, cause) = (Outcome::Dropped, Some(Cause::LeaseLost));
            return Ended { outcome, cause, effect, output: None, took: Duration::ZERO, span };
        }
        let cancel = Cancel::default();
        let licensed = watch::Sender::new(bounds.first_licence);
        let context = JobContext::new(ContextParts {
            namespace: self.namespace.clone(),
            firing: pass.firing().clone(),
            shards: job.spec.shards,
            attempt: owned.won.attempt,
            fence: owned.fence(),
            deadline: bounds.deadline,
            kill_grace: told_grace(job.spec.budget.kill_grace),
            cancel: cancel.clone(),
            licence: Licence::new(licensed.subscribe()),
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
            bounds: &bounds,
            licensed,
            ask_now: Notify::new(),
            task: task.0.abort_handle(),
        };
        let ended = async {
            let joined = (&mut task.0).await;
            left.threads_ended().await;
            joined
        };
        let joined = tokio::select! {
            // If the work returns and something is lost in the same moment, the result counts. The fence decides
            // whether the ledger takes it.
            biased;
            joined = ended => joined,
            never = supervision.watch(hold).instrument(span.clone()) => match never {},
        };
        drop(running);
        let took = self.site.clock.boot_now().saturating_since(bounds.started);
        telemetry::run_duration(&job.spec.name, took);
        let outcome = outcome(joined);
        let cause = span.in_scope(|| supervision.cause_of(&outcome));
        Ended { outcome, cause, output: left.output(), effect, took, span }
    }
}

/// The `kill_grace` that the run is told. It is a little shorter than the real one, so that a run which ends at the
/// last moment (a command that had to be killed) can still report that before it is dropped.
fn told_grace(kill_grace: Duration) -> Duration {
    kill_grace - (kill_grace / 4).min(Duration::from_millis(500))
}
