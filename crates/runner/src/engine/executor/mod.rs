//! The corridor: the one path of every firing, wherever it comes from.
//!
//! Only this room calls both the lock and the ledger. The lock is fast and best effort, and keeps replicas from
//! colliding. The ledger decides. Therefore the lock never decides a skip, an unknown outcome is never taken for
//! a yes, and a run is settled before its lock is released.

mod admit;
mod claim;
mod contend;
mod ended;
mod hold;
mod passage;
mod run;
mod settle;
mod supervise;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use lockcore::Locks;
use tokio::sync::{Notify, Semaphore};

use crate::engine::Site;
use crate::engine::runtimes::Homes;
use crate::firing::{Instance, Reason};
use crate::ledger::{Effects, Ledger};
use crate::registry::BoundJob;

pub(crate) use passage::{Fate, Ticket};

use admit::Admission;
use claim::Claimed;
use hold::Taken;
use passage::{Passage, Step};

/// Takes firings through the corridor.
#[derive(Debug)]
pub(crate) struct Executor {
    /// Prefix of lock keys and idempotency keys.
    pub(crate) namespace: Arc<str>,
    /// The name under which this replica locks and claims.
    pub(crate) instance: Instance,
    /// Layer one.
    pub(crate) locks: Locks,
    /// Layer two.
    pub(crate) ledger: Arc<dyn Ledger>,
    /// Where jobs' own transactions come from.
    pub(crate) effects: Arc<dyn Effects>,
    /// What it shares with the other parts of the replica.
    pub(crate) site: Site,
    /// How many runs this replica may have at once.
    pub(crate) permits: Arc<Semaphore>,
    /// The runtimes of the jobs' code. It cannot block the threads that keep its leases.
    pub(crate) homes: Homes,
    /// Notified when a run has ended and its lock is free, so that the next firing of the job can start.
    pub(crate) turn: Arc<Notify>,
    /// How long a run may ignore its cancellation before the replica gives up on itself.
    pub(crate) stuck_exit: Duration,
}

impl Executor {
    /// Takes one firing through the corridor until its fate is known.
    ///
    /// # Cancel safety
    /// Dropping it drops the run and lets its leases end; another replica takes over.
    pub(crate) async fn execute(&self, job: &BoundJob, ticket: Ticket) -> Fate {
        let mut pass = Passage::new(ticket);
        loop {
            match self.walk(job, &mut pass).await {
                Step::Over(fate) => return fate,
                Step::Again(pause) => tokio::select! {
                    biased;
                    () = self.site.drain.closing() => return Fate::Drained,
                    () = tokio::time::sleep(pause) => {}
                },
            }
        }
    }

    async fn walk(&self, job: &BoundJob, pass: &mut Passage) -> Step {
        // 1 admit
        let _permit = match self.admit(job, pass).await {
            Admission::In(permit) => permit,
            Admission::Closed => return Step::Over(Fate::Drained),
            Admission::LetGo => return Step::Over(Fate::LetGo),
            Admission::TooLate => return self.skip(job, pass, Reason::Missed).await,
        };
        // 2 lock, 3 keep
        let mut hold = match self.take(job, pass).await {
            Taken::Hold(hold) => hold,
            Taken::Elsewhere => return Step::Over(Fate::Elsewhere),
            Taken::Busy => return self.contend(job, pass).await,
            Taken::Unreachable => return self.without_lock(job, pass).await,
        };
        // 4 claim
        let step = match self.claim(job, pass, &hold).await {
            Claimed::Won(owned) => {
                // 5 run
                let ended = self.run(job, pass, &owned, &mut hold).await;
                // 6 settle
                match self.settle(job, &owned, &ended).await {
                    Some(step) => step,
                    None => {
                        // The run has ended, so its lock guards nothing. If only this replica cannot reach the
                        // ledger, a lock that we kept would keep the others from the job until its cap.
                        hold.release(job, None).await;
                        let step = self.settle_until_answered(job, pass, &owned, &ended).await;
                        self.turn.notify_one();
                        return step;
                    }
                }
            }
            Claimed::No(step) => step,
            Claimed::Overlap => self.contend(job, pass).await,
            Claimed::Skip(reason) => self.skip(job, pass, reason).await,
        };
        // 7 release
        hold.release(job, Some(&step)).await;
        self.turn.notify_one();
        step
    }
}
