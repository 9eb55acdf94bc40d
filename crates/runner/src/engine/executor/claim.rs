//! Step four: the row that decides.

use std::time::Duration;

use lockcore::BootInstant;
use tracing::{debug, error, warn};

use super::Executor;
use super::hold::Hold;
use super::passage::{Fate, Passage, Step};
use crate::firing::{Fence, Reason, State};
use crate::ledger::{Claim, ClaimRequest, Found, Heartbeat, LedgerError, Run, Won};
use crate::registry::BoundJob;
use crate::telemetry::{self, ClaimAnswer, SecondRun};

/// A claim that is ours, with the moment from which its lease may be counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owned {
    pub(super) won: Won,
    pub(super) leased_at: BootInstant,
}

impl Owned {
    pub(super) const fn run(&self) -> Run {
        Run { id: self.won.id, fence: self.won.fence }
    }

    pub(super) const fn fence(&self) -> Fence {
        self.won.fence
    }
}

/// What the corridor does with the ledger's answer.
pub(super) enum Claimed {
    /// Run it.
    Won(Owned),
    /// Another run of the job is running.
    Overlap,
    /// It does not run, and a row is to say why.
    Skip(Reason),
    /// It does not run here, or not now.
    No(Step),
}

impl Executor {
    pub(super) async fn claim(&self, job: &BoundJob, pass: &mut Passage, hold: &Hold) -> Claimed {
        let spec = &job.spec;
        let request = ClaimRequest {
            firing: pass.firing().clone(),
            entry: pass.entry(spec),
            claim_id: pass.claim_id,
            owner: self.instance.clone(),
            exclusive: spec.overlap.is_exclusive(),
            delivery: spec.delivery,
            lease: spec.budget.ttl,
        };
        loop {
            let sent = self.site.clock.boot_now();
            let claim = match self.ledger.claim(&request).await {
                Ok(claim) => claim,
                Err(error) => return self.unknown(job, pass, &request, &error).await,
            };
            telemetry::claim(&spec.name, counted_as(&claim));
            return match claim {
                Claim::Won(won) => self.owned(job, pass, won, sent).await,
                Claim::Duplicate(found) => {
                    note_duplicate(job, pass, hold, &found);
                    Claimed::No(Step::Over(Fate::Elsewhere))
                }
                Claim::Overlap(found) => {
                    if !std::mem::replace(&mut pass.told_of_overlap, true) {
                        note_overlap(job, pass, hold, &found);
                    }
                    Claimed::Overlap
                }
                Claim::TooEarly(wait) if wait <= spec.budget.ttl / 2 => {
                    // This host's clock runs ahead. We hold the lock, so no other replica has to try.
                    tokio::time::sleep(wait).await;
                    continue;
                }
                Claim::TooEarly(wait) => Claimed::No(Step::Again(wait)),
                Claim::TooLate => Claimed::Skip(Reason::Missed),
                Claim::Paused => Claimed::Skip(Reason::Paused),
                Claim::Pruned => Claimed::No(Step::Over(Fate::Refused)),
                Claim::Unregistered => {
                    warn!(job = %spec.name, "the ledger does not know this job yet");
                    Claimed::No(Step::Again(Duration::from_secs(1)))
                }
            };
        }
    }

    /// A claim that is certainly ours. If an answer was lost on the way, part of the lease is over and a sweep may be
    /// near. Then only a heartbeat tells whether the run is still ours.
    async fn owned(&self, job: &BoundJob, pass: &Passage, won: Won, sent: BootInstant) -> Claimed {
        if !pass.unsure {
            return Claimed::Won(Owned { won, leased_at: sent });
        }
        let leased_at = self.site.clock.boot_now();
        let run = Run { id: won.id, fence: won.fence };
        match self.ledger.heartbeat(run, job.spec.budget.ttl).await {
            Ok(Heartbeat::Alive { .. }) => Claimed::Won(Owned { won, leased_at }),
            Ok(Heartbeat::Lost) => Claimed::No(Step::Over(Fate::Elsewhere)),
            Err(error) => {
                self.site.pulse.lost(&error);
                Claimed::No(Step::Again(Duration::from_millis(200)))
            }
        }
    }

    /// Unknown is not yes. Asks once whether the claim took effect. If that is not known either, gives the lock back
    /// and tries again later with the same `claim_id`, which finds a row that this claim may have written.
    async fn unknown(
        &self,
        job: &BoundJob,
        pass: &mut Passage,
        request: &ClaimRequest,
        error: &LedgerError,
    ) -> Claimed {
        pass.unsure = true;
        telemetry::claim(&job.spec.name, ClaimAnswer::Unknown);
        let subject = pass.subject();
        if error.is_unavailable() || matches!(error, LedgerError::Busy { .. }) {
            warn!(job = %job.spec.name, subject, error = error as &dyn std::error::Error, "claim without an answer");
        } else {
            error!(job = %job.spec.name, subject, error = error as &dyn std::error::Error, "claim refused");
        }
        match self.ledger.confirm(request).await {
            Ok(Some(won)) => self.owned(job, pass, won, self.site.clock.boot_now()).await,
            Ok(None) => Claimed::No(Step::Again(pass.pause(&self.site.jitter, Duration::from_secs(1)))),
            Err(error) => {
                self.site.pulse.lost(&error);
                Claimed::No(Step::Again(pass.pause(&self.site.jitter, Duration::from_secs(1))))
            }
        }
    }
}

/// If we held the lock, it was lost somewhere and the ledger has refused a second run. That is worth an alarm.
/// Without a lock a duplicate is normal.
fn note_duplicate(job: &BoundJob, pass: &Passage, hold: &Hold, found: &Found) {
    let name = &job.spec.name;
    let owner = found.owner.as_deref().unwrap_or("");
    let subject = pass.subject();
    match (found.state.known(), hold) {
        (Some(State::Queued), _) => {}
        (Some(State::Running), Hold::Locked { .. }) => {
            telemetry::duplicate(name, SecondRun::Running);
            warn!(job = %name, subject, owner, "the lock let a second run through; the ledger refused it");
        }
        (Some(State::Running), Hold::LedgerOnly | Hold::Unlocked) => {
            debug!(job = %name, subject, owner, "another replica runs it");
        }
        (
            Some(State::Succeeded | State::Failed | State::Lost | State::Cancelled | State::Skipped) | None,
            _,
        ) => {
            telemetry::duplicate(name, SecondRun::Ended);
            debug!(job = %name, subject, state = %found.state, "already done");
        }
    }
}

/// A run keeps the job's lock until it has settled. So if we hold the lock and meet a run, that run has lost its
/// lock.
fn note_overlap(job: &BoundJob, pass: &Passage, hold: &Hold, found: &Found) {
    let name = &job.spec.name;
    let (subject, owner) = (pass.subject(), found.owner.as_deref().unwrap_or(""));
    if matches!(hold, Hold::Locked { .. }) {
        telemetry::duplicate(name, SecondRun::Running);
        warn!(job = %name, subject, owner, "the lock let a run through beside another; the ledger refused it");
    } else {
        debug!(job = %name, subject, owner, "another run of the job is running");
    }
}

const fn counted_as(claim: &Claim) -> ClaimAnswer {
    match claim {
        Claim::Won(_) => ClaimAnswer::Won,
        Claim::Duplicate(_) => ClaimAnswer::Duplicate,
        Claim::Overlap(_) => ClaimAnswer::Overlap,
        Claim::Paused => ClaimAnswer::Paused,
        Claim::TooEarly(_) => ClaimAnswer::TooEarly,
        Claim::TooLate => ClaimAnswer::TooLate,
        Claim::Pruned => ClaimAnswer::Pruned,
        Claim::Unregistered => ClaimAnswer::Unregistered,
    }
}
