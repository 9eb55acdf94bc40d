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
        let joined = tokio::select! {
            // If the work returns and something is lost in the same moment, the result counts. The fence decides
            // whether the ledger takes it.
            biased;
            joined = &mut task.0 => joined,
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use chrono::{DateTime, SubsecRound as _, Utc};
    use futures_util::future::BoxFuture;
    use lockcore::Locks;
    use tokio::sync::Semaphore;
    use uuid::Uuid;

    use super::*;
    use crate::clock::ManualClock;
    use crate::config::{Config, Environment};
    use crate::engine::Site;
    use crate::engine::executor::{Fate, Ticket};
    use crate::engine::job_set::{JobSet, registration};
    use crate::engine::runtimes::Runtimes;
    use crate::firing::{Firing, Instance, Origin, Reason, State};
    use crate::job::{ErasedJob, JobError};
    use crate::ledger::{
        Answer, Claim, ClaimRequest, Heartbeat, Ledger, LedgerOptions, Run, Settled, Settlement, Skip,
        Skipped, Won,
    };

    /// A ledger whose replica is frozen for a while at the moment its claim is answered.
    #[derive(Debug)]
    struct FreezesAfterClaim {
        ledger: Arc<dyn Ledger>,
        clock: Arc<ManualClock>,
        span: Duration,
    }

    impl Ledger for FreezesAfterClaim {
        fn claim<'a>(&'a self, request: &'a ClaimRequest) -> Answer<'a, Claim> {
            Box::pin(async move {
                let claim = self.ledger.claim(request).await;
                self.clock.advance(self.span);
                claim
            })
        }

        fn confirm<'a>(&'a self, request: &'a ClaimRequest) -> Answer<'a, Option<Won>> {
            self.ledger.confirm(request)
        }

        fn heartbeat(&self, run: Run, lease: Duration) -> Answer<'_, Heartbeat> {
            self.ledger.heartbeat(run, lease)
        }

        fn settle<'a>(&'a self, settlement: &'a Settlement) -> Answer<'a, Settled> {
            self.ledger.settle(settlement)
        }

        fn skip<'a>(&'a self, skip: &'a Skip) -> Answer<'a, Skipped> {
            self.ledger.skip(skip)
        }
    }

    /// What the code of a run does after its replica has been frozen for a while in the middle of it.
    #[derive(Clone, Copy, Debug)]
    enum Then {
        /// Obeys when it is asked to stop.
        Obeys,
        /// Returns an error that another attempt may heal: the time limit of a client that it used.
        Fails,
    }

    #[derive(Debug)]
    struct Work {
        clock: Arc<ManualClock>,
        frozen: Duration,
        then: Then,
        ran: AtomicBool,
    }

    impl ErasedJob for Work {
        fn run_owned(self: Arc<Self>, ctx: JobContext) -> BoxFuture<'static, Result<(), JobError>> {
            self.ran.store(true, Ordering::SeqCst);
            Box::pin(async move {
                self.clock.advance(self.frozen);
                match self.then {
                    Then::Obeys => {
                        ctx.cancelled().await;
                        Ok(())
                    }
                    Then::Fails => Err(JobError::retry("timed out")),
                }
            })
        }
    }

    fn job(dir: &std::path::Path, work: Arc<Work>) -> Arc<BoundJob> {
        let path = dir.join("jobs.toml");
        std::fs::write(&path, "[jobs.job]\nkind = \"command\"\nparams = {}\nevery = \"1m\"\n").unwrap();
        let kinds: &[&str] = &["command"];
        let spec = Config::load(&path, &Environment::default(), &kinds, &|_| Ok(())).unwrap().jobs[0].clone();
        Arc::new(BoundJob { spec, work, stock: true })
    }

    fn firing(job: &BoundJob, now: DateTime<Utc>) -> Firing {
        Firing {
            job: job.spec.name.clone(),
            scheduled_at: now.trunc_subsecs(0),
            shard: 0,
            trigger_key: String::new(),
            origin: Origin::Schedule,
        }
    }

    /// Whether the code ran, and how its run was judged and recorded.
    fn told(after_claim: Duration, in_run: Duration, then: Then) -> (bool, State, Option<Reason>) {
        let dir = tempfile::tempdir().unwrap();
        let options = LedgerOptions {
            url: format!("sqlite:{}/runner.db", dir.path().display()),
            namespace: "test".into(),
            timeout: Duration::from_secs(20),
            pooler: false,
            migrate: true,
        };
        Runtimes::start(&JobSet::new(Vec::new(), Duration::from_secs(30))).unwrap().run(async |homes| {
            let opened = crate::ledger::open(options).await.unwrap();
            let now = opened.reader.now().await.unwrap().now;
            let clock = Arc::new(ManualClock::new(now));
            let ran = AtomicBool::new(false);
            let work = Arc::new(Work { clock: clock.clone(), frozen: in_run, then, ran });
            let job = job(dir.path(), work.clone());
            opened.housekeeping.register(&[registration(&job)]).await.unwrap();
            let site = Site::new(clock.clone(), Arc::default());
            site.pulse.probe_once(&*opened.reader, &*opened.housekeeping).await;
            let locks =
                Locks::new(lockcore::in_process(clock.clone()), clock.clone(), homes.keepalive.clone());
            let ledger = FreezesAfterClaim { ledger: opened.ledger.clone(), clock, span: after_claim };
            let executor = Executor {
                namespace: "test".into(),
                instance: Instance::new("host", Uuid::new_v4()),
                locks,
                ledger: Arc::new(ledger),
                site,
                permits: Arc::new(Semaphore::new(1)),
                homes,
                effects: opened.effects.clone(),
                turn: Arc::default(),
                stuck_exit: Duration::from_secs(600),
            };
            let fate = executor.execute(&job, Ticket::Fresh(firing(&job, now))).await;
            let Fate::Ran { verdict, settled, .. } = fate else { panic!("{fate:?}") };
            assert_eq!(settled, Some(Settled::Recorded));
            let (state, reason) = verdict.ending.words();
            (work.ran.load(Ordering::SeqCst), state, reason)
        })
    }

    /// Longer than every limit of the job.
    const LONG: Duration = Duration::from_secs(3_600);

    #[test]
    fn a_run_whose_lease_was_over_before_it_could_begin_does_not_begin() {
        let told = told(LONG, Duration::ZERO, Then::Obeys);
        assert_eq!(told, (false, State::Queued, Some(Reason::Interrupted)));
    }

    #[test]
    fn a_run_that_wakes_from_a_freeze_is_interrupted_and_has_not_timed_out() {
        // Its lock and its timeout are over too, and which of them is noticed first is chance.
        let told = told(Duration::ZERO, LONG, Then::Obeys);
        assert_eq!(told, (true, State::Queued, Some(Reason::Interrupted)));
    }

    #[test]
    fn an_error_right_after_a_freeze_is_not_a_failure_of_the_job() {
        let told = told(Duration::ZERO, LONG, Then::Fails);
        assert_eq!(told, (true, State::Queued, Some(Reason::Interrupted)));
    }
}
