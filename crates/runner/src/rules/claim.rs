//! Why a claim did not win.

use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use uuid::Uuid;

use super::view::{Found, OwnRow, View};
use crate::firing::{Delivery, Fence, Firing, FiringId, Instance, State};

/// How far a replica's clock may run ahead of the ledger's without being told to wait.
pub const CLOCK_SKEW: Duration = Duration::from_millis(100);

/// How a firing enters the corridor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry {
    /// No row yet: the claim inserts it, at most `not_after` past the nominal instant.
    Fresh {
        /// `jitter + start_deadline`.
        not_after: Duration,
    },
    /// A queued row: the claim takes it.
    Queued(FiringId),
}

/// The wish to own a firing.
#[derive(Clone, Debug)]
pub struct ClaimRequest {
    /// Which firing.
    pub firing: Firing,
    /// Insert a row or take a queued one.
    pub entry: Entry,
    /// New for every try: the only proof that a claim whose answer was lost is ours.
    pub claim_id: Uuid,
    /// In whose name.
    pub owner: Instance,
    /// Whether no other run of this job and shard may be running.
    pub exclusive: bool,
    /// What the sweep does when the owner vanishes.
    pub delivery: Delivery,
    /// How long the run is believed without a heartbeat.
    pub lease: Duration,
}

/// The answer to a claim. If several "no" apply, it is the first of `Duplicate`, `Unregistered`,
/// `Pruned`, `Paused`, `TooEarly`, `TooLate`, `Overlap`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// It is ours to run.
    Won(Won),
    /// The firing has a row that is not ours to take.
    Duplicate(Found),
    /// Another run of this job and shard is running.
    Overlap(Found),
    /// The job is paused.
    Paused,
    /// The ledger's clock says it is not due for this long yet.
    TooEarly(Duration),
    /// The ledger's clock says its start deadline has passed.
    TooLate,
    /// Retention has passed over this instant.
    Pruned,
    /// The ledger does not know the job.
    Unregistered,
}

/// A claim that won.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Won {
    /// The row.
    pub id: FiringId,
    /// The number minted with this claim.
    pub fence: Fence,
    /// From 1.
    pub attempt: u32,
    /// Vanished owners and interruptions of this firing so far.
    pub crashes: u32,
    /// Runs of this firing so far that failed by themselves and were given another try.
    pub failures: u32,
    /// The ledger's time of the claim.
    pub started_at: DateTime<Utc>,
}

/// Why a claim did not win, as of `view`. None if nothing forbids it any more: what stood in the way of the
/// statement has gone since, and the claim may be made again.
#[must_use]
pub fn why_not_claimed(view: &View, request: &ClaimRequest) -> Option<Claim> {
    if let Some(own) = &view.own
        && let Some(answer) = answer_of_own_row(own, request)
    {
        return Some(answer);
    }
    let Some(job) = view.job else { return Some(Claim::Unregistered) };
    let is_pruned = match request.entry {
        Entry::Fresh { .. } => job.pruned,
        // A queued row goes away by retention only.
        Entry::Queued(_) => view.own.is_none(),
    };
    if is_pruned {
        return Some(Claim::Pruned);
    }
    if job.paused {
        return Some(Claim::Paused);
    }
    if let Some(untimely) = untimely(view, request) {
        return Some(untimely);
    }
    // A firing that excludes no other looks for none.
    view.running.clone().filter(|_| request.exclusive).map(Claim::Overlap)
}

/// What the firing's own row answers; none if this claim may take it.
fn answer_of_own_row(own: &OwnRow, request: &ClaimRequest) -> Option<Claim> {
    // An earlier try of this very claim whose answer was lost.
    if own.found.state == State::Running
        && own.claim_id == Some(request.claim_id)
        && let Some(won) = own.won
    {
        return Some(Claim::Won(won));
    }
    let is_ours_to_take = own.found.state == State::Queued && request.entry == Entry::Queued(own.found.id);
    (!is_ours_to_take).then(|| Claim::Duplicate(own.found.clone()))
}

/// Whether the ledger's clock forbids the claim.
fn untimely(view: &View, request: &ClaimRequest) -> Option<Claim> {
    let scheduled_at = request.firing.scheduled_at.trunc_subsecs(3);
    let (due, allowed_early, last) = match request.entry {
        Entry::Fresh { not_after } => (scheduled_at, CLOCK_SKEW, after(scheduled_at, not_after)),
        Entry::Queued(_) => {
            (view.own.as_ref().and_then(|own| own.due_at).unwrap_or(view.now), Duration::ZERO, None)
        }
    };
    let early = (due - view.now).to_std().unwrap_or_default();
    if early > allowed_early {
        return Some(Claim::TooEarly(early));
    }
    last.is_some_and(|last| last < view.now).then_some(Claim::TooLate)
}

/// None if that is beyond the calendar, and so never comes.
fn after(at: DateTime<Utc>, span: Duration) -> Option<DateTime<Utc>> {
    TimeDelta::from_std(span).ok().and_then(|span| at.checked_add_signed(span))
}
