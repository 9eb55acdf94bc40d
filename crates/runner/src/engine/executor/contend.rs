//! What becomes of a firing that cannot run now. The ledger decides that, never the lock.

use std::time::Duration;

use lockcore::BootInstant;
use tracing::{debug, info};

use super::Executor;
use super::passage::{Fate, Passage, Step, Ticket};
use crate::firing::{Reason, State};
use crate::ledger::{Skip, Skipped};
use crate::registry::BoundJob;
use crate::telemetry;

/// The longest pause between two tries for a busy lock.
const LONGEST_PAUSE: Duration = Duration::from_millis(500);

impl Executor {
    /// Something else holds the job's lock. If the ledger confirms a run, the overlap policy applies. If not, the
    /// holder is between settle and release, or dead. Then this tries again for at most one ttl, and gives up.
    pub(super) async fn contend(&self, job: &BoundJob, pass: &mut Passage) -> Step {
        if matches!(pass.ticket, Ticket::Fresh(_)) && job.spec.overlap.skips() {
            let reason = Reason::Overlap;
            let skip = skip(pass, reason, true);
            match self.ledger.skip(&skip).await {
                Ok(Skipped::NothingRunning) => {}
                Ok(skipped) => return skipped_step(job, pass, reason, &skipped),
                Err(error) => self.site.pulse.lost(&error),
            }
        }
        self.wait_or_let_go(job, pass)
    }

    /// The lock's server is away and the job does not run without a lock. Waits up to one ttl, then records that.
    pub(super) async fn without_lock(&self, job: &BoundJob, pass: &mut Passage) -> Step {
        match self.wait_or_let_go(job, pass) {
            Step::Over(_) => self.skip(job, pass, Reason::LockUnavailable).await,
            again @ Step::Again(_) => again,
        }
    }

    /// Records that the firing did not run. A queued one keeps its row and waits.
    pub(super) async fn skip(&self, job: &BoundJob, pass: &mut Passage, reason: Reason) -> Step {
        if matches!(pass.ticket, Ticket::Queued(_)) {
            return Step::Over(Fate::Waiting);
        }
        match self.ledger.skip(&skip(pass, reason, false)).await {
            Ok(skipped) => skipped_step(job, pass, reason, &skipped),
            Err(error) => {
                self.site.pulse.lost(&error);
                Step::Again(pass.pause(&self.site.jitter, Duration::from_secs(1)))
            }
        }
    }

    fn wait_or_let_go(&self, job: &BoundJob, pass: &mut Passage) -> Step {
        let now = self.site.clock.boot_now();
        let since: BootInstant = *pass.waiting_since.get_or_insert(now);
        if now.saturating_since(since) < job.spec.budget.ttl {
            return Step::Again(pass.pause(&self.site.jitter, LONGEST_PAUSE));
        }
        debug!(job = %job.spec.name, subject = pass.subject(), "let go: the job stayed busy for a whole ttl");
        Step::Over(Fate::LetGo)
    }
}

fn skip(pass: &Passage, reason: Reason, only_while_running: bool) -> Skip {
    Skip { firing: pass.firing().clone(), reason, detail: None, only_while_running }
}

fn skipped_step(job: &BoundJob, pass: &Passage, reason: Reason, skipped: &Skipped) -> Step {
    Step::Over(match skipped {
        Skipped::Recorded => {
            info!(job = %job.spec.name, scheduled_at = pass.subject(), %reason, "skipped");
            telemetry::firing(&job.spec.name, State::Skipped, Some(reason));
            Fate::Skipped(reason)
        }
        Skipped::AlreadyThere(_) => Fate::Elsewhere,
        Skipped::NothingRunning => Fate::LetGo,
        Skipped::Refused => Fate::Refused,
    })
}
