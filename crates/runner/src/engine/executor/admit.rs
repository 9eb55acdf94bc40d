//! Step one: whether this replica may contend for a firing now.

use chrono::TimeDelta;
use tokio::sync::OwnedSemaphorePermit;

use super::Executor;
use super::passage::{Passage, Ticket};
use crate::registry::BoundJob;

/// How long after its start deadline a firing is given up. A claim may win until the deadline itself, so that
/// no firing is recorded as missed that another replica may still claim.
const CLOSED: TimeDelta = TimeDelta::milliseconds(10);

/// Whether a firing may go on.
pub(super) enum Admission {
    /// It may go on, with this permit.
    In(OwnedSemaphorePermit),
    /// The replica is shutting down.
    Closed,
    /// The firing's start deadline passed while it waited for a place.
    TooLate,
    /// It passed while the ledger was away, so no row can be written now.
    LetGo,
}

impl Executor {
    /// Waits for the ledger to answer and for a free place, as long as the firing may still start.
    ///
    /// A replica that cannot reach the ledger must not contend. It would fail faster than the others, win the lock
    /// again and again, and keep the healthy replicas from working.
    pub(super) async fn admit(&self, job: &BoundJob, pass: &Passage) -> Admission {
        let place = async {
            loop {
                self.site.pulse.beating().await;
                // The semaphore is never closed. If it were, the replica would be gone.
                let Ok(permit) = self.permits.clone().acquire_owned().await else { return Admission::Closed };
                if self.site.pulse.is_beating() {
                    return Admission::In(permit);
                }
            }
        };
        tokio::select! {
            biased;
            () = self.site.drain.closing() => Admission::Closed,
            admission = place => admission,
            () = self.start_deadline(job, pass) => {
                if self.site.pulse.is_beating() { Admission::TooLate } else { Admission::LetGo }
            }
        }
    }

    async fn start_deadline(&self, job: &BoundJob, pass: &Passage) {
        match pass.ticket {
            // A queued row has its own `expires_at` in the ledger.
            Ticket::Queued(_) => std::future::pending().await,
            Ticket::Fresh(_) => {
                let deadline = TimeDelta::from_std(job.spec.start_deadline).ok();
                match deadline.and_then(|span| pass.due_at(&job.spec).checked_add_signed(span + CLOSED)) {
                    Some(instant) => self.site.pulse.sleep_until(instant).await,
                    None => std::future::pending().await,
                }
            }
        }
    }
}
