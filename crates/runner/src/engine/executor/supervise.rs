//! What watches a run: its heartbeats, its lock, its time, and whether it stops when it is asked to.
//!
//! Five watchers share one [`Cancel`]; the first cause stays. They ask the run to stop, and later drop it. They
//! keep its lease until it has ended, so that no other owner is licensed beside it.

use std::convert::Infallible;
use std::future::pending;
use std::time::Duration;

use lockcore::{BootInstant, Lease, Loss};
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tracing::{debug, error, info, warn};

use super::Executor;
use super::claim::Owned;
use super::hold::{Hold, Retaken};
use crate::clock::sleep_until;
use crate::config::{Budget, JobSpec, OnUnavailable};
use crate::firing::Cause;
use crate::job::Cancel;
use crate::ledger::{Effect, Heartbeat};
use crate::rules::Outcome;
use crate::telemetry::{self, LockLoss, RenewalAnswer};

/// Everything that may stop one run.
pub(super) struct Supervision<'a> {
    pub(super) executor: &'a Executor,
    pub(super) spec: &'a JobSpec,
    pub(super) owned: &'a Owned,
    pub(super) cancel: &'a Cancel,
    pub(super) effect: &'a Effect,
    pub(super) bounds: &'a Bounds,
    /// Until when the ledger lets the work go on; each acknowledged heartbeat moves it.
    pub(super) licensed: watch::Sender<BootInstant>,
    /// Notified when the next heartbeat is not to wait until it is due.
    pub(super) ask_now: Notify,
    pub(super) task: AbortHandle,
}

/// The moments that bound one run, worked out once. The run's context and its transactions are told the same
/// deadline.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// When the run began.
    pub(super) started: BootInstant,
    /// When its `timeout` ends.
    pub(super) deadline: BootInstant,
    /// Until when the work may go on after the claim. Each acknowledged heartbeat moves that.
    pub(super) first_licence: BootInstant,
}

impl Bounds {
    pub(super) fn of(budget: &Budget, owned: &Owned, started: BootInstant) -> Self {
        let first_licence = licence(budget, owned.leased_at);
        Self { started, deadline: started + budget.timeout, first_licence }
    }
}

/// Until when the work may go on under a lease that counts from `leased_at`. The work must have stopped when the
/// lease ends, and stopping takes up to `kill_grace`.
fn licence(budget: &Budget, leased_at: BootInstant) -> BootInstant {
    let lease = Lease::granted(leased_at, budget.ttl, 0);
    lease.trusted_until().saturating_sub(budget.kill_grace)
}

impl Supervision<'_> {
    /// Watches until dropped.
    pub(super) async fn watch(&self, hold: &mut Hold) -> Infallible {
        let (never, ..) = tokio::join!(
            self.watch_licence(),
            self.keep_lease(),
            self.watch_lock(hold),
            self.watch_time(),
            self.enforce(),
        );
        never
    }

    /// Sends a heartbeat every third of the ttl, sooner after a failure. Each one that is acknowledged moves the
    /// licence.
    async fn keep_lease(&self) -> Infallible {
        let budget = &self.spec.budget;
        let clock = &*self.executor.site.clock;
        let mut due = self.owned.leased_at + budget.ttl / 3;
        loop {
            tokio::select! {
                () = sleep_until(clock, due) => {}
                () = self.ask_now.notified() => {}
            }
            let sent = clock.boot_now();
            if !self.is_licensed() {
                // The work must have stopped by now. The lease is kept only until it has.
                self.stop(Cause::LeaseLost);
            }
            match self.executor.ledger.heartbeat(self.owned.run(), budget.ttl).await {
                Ok(Heartbeat::Alive { cancel_requested }) => {
                    self.licensed.send_replace(licence(budget, sent));
                    due = sent + budget.ttl / 3;
                    if cancel_requested {
                        self.stop(Cause::CancelRequested);
                    }
                }
                // Most likely its own transaction has ended it. If not, the licence runs out.
                Ok(Heartbeat::Lost) if self.effect.is_sent() => return pending().await,
                Ok(Heartbeat::Lost) => {
                    warn!("lost: the ledger has given this run to someone else, or ended it");
                    self.stop(Cause::LeaseLost);
                    return pending().await;
                }
                Err(error) => {
                    self.executor.site.pulse.lost(&error);
                    debug!(error = &error as &dyn std::error::Error, "heartbeat without an answer");
                    due = clock.boot_now() + budget.ttl / 12;
                }
            }
        }
    }

    /// Stops the run when its licence ends without having been moved.
    async fn watch_licence(&self) -> Infallible {
        let mut licensed = self.licensed.subscribe();
        loop {
            let end = *licensed.borrow_and_update();
            tokio::select! {
                // A run that woke from a freeze must stop before it looks at anything else.
                biased;
                () = sleep_until(&*self.executor.site.clock, end) => break,
                Ok(()) = licensed.changed() => {}
            }
        }
        self.stop(Cause::LeaseLost);
        pending().await
    }

    /// Decides what the loss of the lock means for the run.
    async fn watch_lock(&self, hold: &mut Hold) -> Infallible {
        let name = &self.spec.name;
        loop {
            match hold.lost().await {
                Loss::Unreachable if self.spec.on_unavailable == OnUnavailable::LedgerOnly => {
                    telemetry::lock_lost(name, LockLoss::Unreachable);
                    warn!(
                        "degraded: the lock cannot be renewed; the run goes on under its lease in the ledger"
                    );
                }
                Loss::Unreachable => {
                    telemetry::lock_lost(name, LockLoss::Unreachable);
                    warn!("lost: the lock cannot be renewed, and the job does not run without it");
                    self.stop(Cause::LockLost);
                    return pending().await;
                }
                Loss::Cap => {
                    telemetry::lock_lost(name, LockLoss::Cap);
                    let late = self.executor.site.clock.boot_now() + self.spec.budget.ttl / 20;
                    // The cap lasts as long as the timeout. If both end together, the job was too long.
                    self.stop(if late >= self.bounds.deadline { Cause::Timeout } else { Cause::RenewalCap });
                    return pending().await;
                }
                // A kind of loss that this program does not know counts as the worst one.
                Loss::NotMine | _ => {
                    telemetry::lock_lost(name, LockLoss::NotMine);
                    telemetry::lock_renewals(RenewalAnswer::NotMine, 1);
                    if self.spec.on_unavailable == OnUnavailable::Skip {
                        warn!(
                            "lost: the lock is gone or someone else's, and the job does not run without it"
                        );
                        self.stop(Cause::LockLost);
                        return pending().await;
                    }
                    warn!(
                        "degraded: the lock is gone or someone else's; the run goes on while the ledger confirms its lease"
                    );
                    self.confirm_lease().await;
                    self.take_lock_again(hold).await;
                }
            }
        }
    }

    /// Asks the ledger at once, and returns when it has confirmed the lease. If it says that the run is someone
    /// else's, or does not answer until the licence ends, the run is stopped.
    async fn confirm_lease(&self) {
        let mut licensed = self.licensed.subscribe();
        self.ask_now.notify_one();
        if licensed.changed().await.is_err() {
            pending().await
        }
    }

    /// Tries to take a lost lock again, at each third of the ttl while someone else has it. Returns when it is ours.
    async fn take_lock_again(&self, hold: &mut Hold) {
        // A run that was asked to stop gives its lock up anyway.
        while self.cancel.cause().is_none() {
            match hold.retake(&self.executor.locks).await {
                Retaken::Ours => {
                    info!("the lock is ours again");
                    return;
                }
                Retaken::NotNow => {}
                Retaken::Never => break,
            }
            self.rest(self.spec.budget.ttl / 3).await;
        }
        pending().await
    }

    /// The run's own time limit, and the replica's.
    async fn watch_time(&self) -> Infallible {
        tokio::select! {
            biased;
            () = sleep_until(&*self.executor.site.clock, self.bounds.deadline) => self.stop(Cause::Timeout),
            () = self.executor.site.drain.interrupting() => self.stop(Cause::Drain),
        }
        pending().await
    }

    /// Drops a run that does not end within its grace. If that does not end it either, the run blocks a thread that
    /// nobody can take back, and the replica leaves.
    async fn enforce(&self) -> Infallible {
        let cause = self.cancel.cancelled().await;
        debug!(%cause, "asked to stop");
        self.rest(self.spec.budget.kill_grace).await;
        self.task.abort();
        self.rest(Duration::from_secs(1)).await;
        warn!(%cause, "stuck: the run ignores its cancellation; it is not settled while it may still act");
        let _counted = telemetry::stuck();
        self.rest(self.executor.stuck_exit).await;
        error!(%cause, "still stuck: leaving, so that the run ends with this process");
        self.executor.site.drain.give_up_on_stuck_run();
        pending().await
    }

    async fn rest(&self, span: Duration) {
        let clock = &*self.executor.site.clock;
        sleep_until(clock, clock.boot_now() + span).await;
    }

    /// Whether the ledger still lets the work go on.
    fn is_licensed(&self) -> bool {
        self.executor.site.clock.boot_now() < *self.licensed.borrow()
    }

    /// Asks the run to stop, unless it has been asked.
    ///
    /// A run that wakes from a freeze finds all its limits passed at once, and hears of them in any order: the lock
    /// is kept on another runtime, which may wake first. So the clock decides, not the order. If the licence is
    /// over, that is the cause: an interruption, not a timeout of the job.
    fn stop(&self, cause: Cause) {
        let licensed = self.is_licensed();
        if !licensed && self.cancel.cause().is_none() && !self.effect.is_sent() {
            warn!("lost: the ledger did not acknowledge this run's heartbeat in time");
        }
        self.cancel.cancel(if licensed { cause } else { Cause::LeaseLost });
    }

    /// Why the run ended so, if not by itself.
    ///
    /// A freeze also runs out the time limits of the job's own clients. If an error that another attempt may heal
    /// comes when the licence is over, nobody knows whose error it is, and the run counts as interrupted.
    pub(super) fn cause_of(&self, outcome: &Outcome) -> Option<Cause> {
        let may_heal = match outcome {
            Outcome::Failed { retry, .. } => *retry,
            Outcome::Panicked(_) | Outcome::Dropped => true,
            Outcome::Succeeded => false,
        };
        if may_heal && !self.is_licensed() {
            self.stop(Cause::LeaseLost);
        }
        self.cancel.cause()
    }
}
