//! Step six: the result is recorded under the fence.

use std::time::Duration;

use tracing::{error, info, warn};

use super::Executor;
use super::claim::Owned;
use super::ended::Ended;
use super::passage::{Fate, Passage, Step};
use crate::capture::tail_of;
use crate::config::JobSpec;
use crate::firing::State;
use crate::ledger::{LedgerError, Settled, Settlement};
use crate::registry::BoundJob;
use crate::rules::{RunTerms, Verdict, judge};
use crate::telemetry;

/// An error in a row has at most so many bytes.
const MOST_ERROR: usize = 16 << 10;

/// The question that the ledger did not answer.
enum Unanswered {
    /// Whether the run's own transaction has committed.
    Commit(LedgerError),
    /// The end of the run.
    Settle(LedgerError),
}

impl Executor {
    /// Records how the run ended; none if the ledger gave no answer.
    pub(super) async fn settle(&self, job: &BoundJob, owned: &Owned, ended: &Ended) -> Option<Step> {
        tokio::select! {
            biased;
            recorded = self.record(job, owned, ended) => match recorded {
                Ok((verdict, settled)) => Some(self.settled(job, ended, verdict, settled)),
                Err(unanswered) => {
                    self.no_answer(ended, &unanswered);
                    None
                }
            },
            () = self.site.drain.abandoning() => Some(self.unrecorded(job, owned, ended)),
        }
    }

    /// Asks until the ledger answers or the replica leaves. A late result counts as long as no other replica has taken
    /// the run over. Called without the lock.
    pub(super) async fn settle_until_answered(
        &self,
        job: &BoundJob,
        pass: &mut Passage,
        owned: &Owned,
        ended: &Ended,
    ) -> Step {
        // Short, so that a ledger which comes back has the result before a sweep takes this owner for vanished.
        let longest = (job.spec.budget.ttl / 12).min(Duration::from_secs(1));
        loop {
            let pause = pass.pause(&self.site.jitter, longest);
            tokio::select! {
                biased;
                () = self.site.drain.abandoning() => return self.unrecorded(job, owned, ended),
                () = tokio::time::sleep(pause) => {}
            }
            if let Some(step) = self.settle(job, owned, ended).await {
                return step;
            }
        }
    }

    async fn record(
        &self,
        job: &BoundJob,
        owned: &Owned,
        ended: &Ended,
    ) -> Result<(Verdict, Settled), Unanswered> {
        let verdict = verdict(job, owned, ended);
        // Asked first. If a result is recorded while the commit is unknown, the two might contradict each other.
        if ended.effect.is_committed().await.map_err(Unanswered::Commit)? {
            // The run's own transaction has ended the firing, whatever the run did afterwards.
            if let Some(error) = &verdict.error {
                ended.span.in_scope(|| warn!(error, "the run went wrong after it had committed"));
            }
            return Ok((Verdict::succeeded(), Settled::Recorded));
        }
        let settlement = Settlement {
            run: owned.run(),
            ending: verdict.ending,
            crashed: verdict.crashed,
            error: verdict.error.clone().map(|error| tail_of(error, MOST_ERROR)),
            output: ended.output.clone(),
        };
        let settled = self.ledger.settle(&settlement).await.map_err(Unanswered::Settle)?;
        Ok((verdict, settled))
    }

    /// Logs and counts the ledger's answer.
    fn settled(&self, job: &BoundJob, ended: &Ended, verdict: Verdict, settled: Settled) -> Step {
        let name = &job.spec.name;
        let took = ended.took;
        ended.span.in_scope(|| match settled {
            Settled::Recorded => {
                let (state, reason) = verdict.ending.words();
                telemetry::firing(name, state, reason);
                let (error, why) = (verdict.error.as_deref(), reason.map(|reason| reason.as_str()));
                match state {
                    State::Succeeded => {
                        telemetry::last_success(name, self.site.pulse.now());
                        info!(?took, "succeeded");
                    }
                    State::Queued => warn!(?took, reason = why, error, "goes back into the queue"),
                    State::Running | State::Failed | State::Lost | State::Cancelled | State::Skipped => {
                        error!(?took, %state, reason = why, error, "ended");
                    }
                }
            }
            Settled::Fenced => {
                telemetry::fenced(name);
                let cause = ended.cause.map(tracing::field::display);
                warn!(?took, cause, "lost: another replica has taken this run over; its result is void");
            }
        });
        let output = ended.output.clone();
        Step::Over(Fate::Ran { verdict, settled: Some(settled), output })
    }

    /// The replica leaves before the ledger has answered.
    fn unrecorded(&self, job: &BoundJob, owned: &Owned, ended: &Ended) -> Step {
        ended.span.in_scope(|| warn!("left without recording the result; another replica takes over"));
        let (verdict, output) = (verdict(job, owned, ended), ended.output.clone());
        Step::Over(Fate::Ran { verdict, settled: None, output })
    }

    fn no_answer(&self, ended: &Ended, unanswered: &Unanswered) {
        let (Unanswered::Commit(error) | Unanswered::Settle(error)) = unanswered;
        self.site.pulse.lost(error);
        let error = error as &dyn std::error::Error;
        ended.span.in_scope(|| match unanswered {
            Unanswered::Commit(_) => warn!(error, "commit without an answer; asking again"),
            Unanswered::Settle(_) => warn!(error, "settle without an answer; asking again"),
        });
    }
}

fn verdict(job: &BoundJob, owned: &Owned, ended: &Ended) -> Verdict {
    judge(&run_terms(&job.spec), &owned.won, &ended.outcome, ended.cause)
}

fn run_terms(spec: &JobSpec) -> RunTerms {
    RunTerms {
        timeout: spec.budget.timeout,
        max_attempts: spec.max_attempts,
        max_crashes: spec.max_crashes,
        delivery: spec.delivery,
        backoff: spec.backoff,
    }
}
