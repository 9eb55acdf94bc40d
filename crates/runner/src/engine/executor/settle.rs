//! Step six: the result, under the fence.

use std::time::Duration;

use tracing::{error, info, warn};

use super::Executor;
use super::claim::Owned;
use super::hold::Hold;
use super::passage::{Fate, Passage, Step};
use super::run::Ended;
use super::verdict::{Verdict, judge};
use crate::capture::tail_of;
use crate::firing::State;
use crate::ledger::{Ending, Settled, Settlement};
use crate::registry::BoundJob;
use crate::telemetry;

/// The most of an error that is written into a row, in bytes.
const MOST_ERROR: usize = 16 << 10;

impl Executor {
    /// Records how the run ended. A result counts for as long as nobody took over, however late it
    /// is, so an unreachable ledger is asked again until it answers or the replica leaves.
    pub(super) async fn settle(
        &self,
        job: &BoundJob,
        pass: &mut Passage,
        owned: &Owned,
        hold: &mut Hold,
        ended: Ended,
    ) -> Step {
        let recorded = tokio::select! {
            biased;
            recorded = self.record(job, pass, owned, hold, &ended) => Some(recorded),
            () = self.site.drain.abandoning() => None,
        };
        let (verdict, settled) = match recorded {
            Some((verdict, settled)) => (verdict, Some(settled)),
            None => (judge(&job.spec, &owned.won, &ended), None),
        };
        ended.span.in_scope(|| match settled {
            Some(Settled::Recorded) => {
                let (state, reason) = verdict.words();
                telemetry::firing(&job.spec.name, state, reason);
                if state == State::Succeeded {
                    telemetry::last_success(&job.spec.name, self.site.pulse.now());
                }
                let error = verdict.error.as_deref();
                match state {
                    State::Succeeded => info!(took = ?ended.took, "succeeded"),
                    State::Queued => warn!(took = ?ended.took, reason, error, "goes back into the queue"),
                    _ => error!(took = ?ended.took, %state, reason, error, "ended"),
                }
            }
            Some(Settled::Fenced) => {
                telemetry::fenced(&job.spec.name);
                warn!(took = ?ended.took, cause = ended.cause.map(tracing::field::display), "lost: someone took this run over; its result is void");
            }
            None => warn!("left without recording the result; another replica takes over"),
        });
        Step::Over(Fate::Ran { verdict, settled, output: ended.output })
    }

    async fn record(
        &self,
        job: &BoundJob,
        pass: &mut Passage,
        owned: &Owned,
        hold: &mut Hold,
        ended: &Ended,
    ) -> (Verdict, Settled) {
        let verdict = judge(&job.spec, &owned.won, ended);
        if self.has_committed(job, pass, hold, ended).await {
            // A transaction of the run's own has ended the firing, whatever the run did afterwards.
            if let Some(error) = &verdict.error {
                ended.span.in_scope(|| warn!(error, "the run went wrong after it had committed"));
            }
            return (Verdict::succeeded(), Settled::Recorded);
        }
        let settlement = Settlement {
            run: owned.run(),
            ending: verdict.ending.clone(),
            crashed: verdict.crashed,
            error: verdict.error.clone().map(|error| tail_of(error, MOST_ERROR)),
            output: ended.output.clone(),
        };
        let settled = self.settle_until_answered(job, pass, hold, &settlement).await;
        (verdict, settled)
    }

    /// Whether the run's own transaction has committed, asked until the ledger answers where the run
    /// did not learn it: what is recorded over an unknown commit might contradict it.
    async fn has_committed(
        &self,
        job: &BoundJob,
        pass: &mut Passage,
        hold: &mut Hold,
        ended: &Ended,
    ) -> bool {
        loop {
            match ended.effect.is_committed().await {
                Ok(committed) => return committed,
                Err(error) => {
                    self.site.pulse.lost(&error);
                    warn!(error = &error as &dyn std::error::Error, "commit without an answer; asking again");
                    self.wait_unlocked(job, pass, hold).await;
                }
            }
        }
    }

    async fn settle_until_answered(
        &self,
        job: &BoundJob,
        pass: &mut Passage,
        hold: &mut Hold,
        settlement: &Settlement,
    ) -> Settled {
        loop {
            match self.ledger.settle(settlement).await {
                Ok(settled) => return settled,
                Err(error) => {
                    self.site.pulse.lost(&error);
                    warn!(error = &error as &dyn std::error::Error, "settle without an answer; asking again");
                    self.wait_unlocked(job, pass, hold).await;
                }
            }
        }
    }

    /// Waits before asking again, without the lock. The run has ended, so its lock guards nothing; kept
    /// alive while the ledger is away from this replica only, it would keep the others from the job
    /// until its cap.
    async fn wait_unlocked(&self, job: &BoundJob, pass: &mut Passage, hold: &mut Hold) {
        // Often enough that a ledger which has come back is told before any sweep may think us gone.
        let pause = pass.pause(&self.site.jitter, (job.spec.budget.ttl / 12).min(Duration::from_secs(1)));
        let (lock, unsettled) = (std::mem::replace(hold, Hold::Unlocked), Step::Again(pause));
        tokio::join!(lock.release(job, &unsettled), tokio::time::sleep(pause));
    }
}

impl Ending {
    /// Whether the firing is over.
    pub(super) const fn is_terminal(&self) -> bool {
        matches!(self, Self::Terminal { .. })
    }
}
