//! Why a claim did not win.

use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, TimeDelta, Utc};
use uuid::Uuid;

use super::view::{Found, OwnRow, View, Won};
use crate::firing::{Delivery, Firing, FiringId, Instance, State};

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::firing::{Fence, JobName, Origin, Word};
    use crate::rules::{KnownJob, why_not_claimed};

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    fn found(id: i64, state: State) -> Found {
        let id = FiringId(id);
        Found { id, scheduled_at: at(0), state: state.into(), reason: None, owner: None }
    }

    fn won(id: i64) -> Won {
        Won { id: FiringId(id), fence: Fence(7), attempt: 1, crashes: 0, failures: 0, started_at: at(0) }
    }

    fn own(state: State) -> Option<OwnRow> {
        Some(OwnRow { found: found(1, state), claim_id: None, won: None, due_at: Some(at(0)) })
    }

    /// Nothing stands in the way.
    fn clear() -> View {
        let job = Some(KnownJob { paused: false, pruned: false });
        View { now: at(1), job, own: None, running: None, one_waits: false }
    }

    fn request(entry: Entry) -> ClaimRequest {
        ClaimRequest {
            firing: Firing {
                job: JobName::new("job").unwrap(),
                scheduled_at: at(0),
                shard: 0,
                trigger_key: String::new(),
                origin: Origin::Schedule,
            },
            entry,
            claim_id: Uuid::from_u128(1),
            owner: Instance::new("host", Uuid::from_u128(2)),
            exclusive: true,
            delivery: Delivery::AtLeastOnce,
            lease: Duration::from_secs(30),
        }
    }

    const FRESH: Entry = Entry::Fresh { not_after: Duration::from_secs(60) };
    const QUEUED: Entry = Entry::Queued(FiringId(1));

    #[test]
    fn nothing_forbids_a_claim_when_what_stood_in_its_way_is_gone() {
        assert_eq!(why_not_claimed(&clear(), &request(FRESH)), None);
        let queued = View { own: own(State::Queued), ..clear() };
        assert_eq!(why_not_claimed(&queued, &request(QUEUED)), None);
    }

    #[test]
    fn of_several_reasons_the_first_of_the_documented_order_is_told() {
        let duplicate = Claim::Duplicate(found(1, State::Running));
        let job = Some(KnownJob { paused: true, pruned: true });
        let mut view = View {
            now: at(100),
            job: None,
            own: own(State::Running),
            running: Some(found(2, State::Running)),
            one_waits: false,
        };
        let told = |view: &View| why_not_claimed(view, &request(FRESH)).unwrap();
        assert_eq!(told(&view), duplicate);
        view.own = None;
        assert_eq!(told(&view), Claim::Unregistered);
        view.job = job;
        assert_eq!(told(&view), Claim::Pruned);
        view.job = Some(KnownJob { paused: true, pruned: false });
        assert_eq!(told(&view), Claim::Paused);
        view.job = Some(KnownJob { paused: false, pruned: false });
        view.now = at(-100);
        assert_eq!(told(&view), Claim::TooEarly(Duration::from_secs(100)));
        view.now = at(100);
        assert_eq!(told(&view), Claim::TooLate);
        view.now = at(1);
        assert_eq!(told(&view), Claim::Overlap(found(2, State::Running)));
    }

    #[test]
    fn a_queued_row_that_is_gone_was_pruned_unless_its_job_is_gone_too() {
        let told = |job| why_not_claimed(&View { job, ..clear() }, &request(QUEUED));
        assert_eq!(told(clear().job), Some(Claim::Pruned));
        assert_eq!(told(None), Some(Claim::Unregistered));
    }

    #[test]
    fn a_queued_row_has_no_watermark_and_no_start_deadline() {
        let job = Some(KnownJob { paused: false, pruned: true });
        let view = View { now: at(1_000_000), job, own: own(State::Queued), ..clear() };
        assert_eq!(why_not_claimed(&view, &request(QUEUED)), None);
    }

    #[test]
    fn a_queued_row_is_not_due_a_moment_too_early() {
        let view = View { now: at(0) - TimeDelta::milliseconds(1), own: own(State::Queued), ..clear() };
        let told = why_not_claimed(&view, &request(QUEUED));
        assert_eq!(told, Some(Claim::TooEarly(Duration::from_millis(1))));
    }

    #[test]
    fn a_fresh_claim_may_be_early_by_the_skew_and_late_by_its_deadline() {
        let told = |millis| {
            let now = at(0) + TimeDelta::milliseconds(millis);
            why_not_claimed(&View { now, ..clear() }, &request(FRESH))
        };
        assert_eq!(told(-101), Some(Claim::TooEarly(Duration::from_millis(101))));
        assert_eq!((told(-100), told(60_000)), (None, None));
        assert_eq!(told(60_001), Some(Claim::TooLate));
    }

    #[test]
    fn a_deadline_beyond_the_calendar_never_passes() {
        let view = View { now: at(1_000_000_000), ..clear() };
        assert_eq!(why_not_claimed(&view, &request(Entry::Fresh { not_after: Duration::MAX })), None);
    }

    #[test]
    fn a_claim_that_excludes_no_other_run_looks_for_none() {
        let view = View { running: Some(found(2, State::Running)), ..clear() };
        let free = ClaimRequest { exclusive: false, ..request(FRESH) };
        assert_eq!(why_not_claimed(&view, &free), None);
    }

    #[test]
    fn a_claim_whose_answer_was_lost_is_the_same_win_and_no_other_claims() {
        let claimed = |claim_id, state: State| View {
            own: Some(OwnRow {
                found: found(1, state),
                claim_id: Some(claim_id),
                won: Some(won(1)),
                due_at: None,
            }),
            ..clear()
        };
        let told = |view: View| why_not_claimed(&view, &request(FRESH)).unwrap();
        assert_eq!(told(claimed(Uuid::from_u128(1), State::Running)), Claim::Won(won(1)));
        let of_another = claimed(Uuid::from_u128(9), State::Running);
        assert_eq!(told(of_another), Claim::Duplicate(found(1, State::Running)));
        let swept = claimed(Uuid::from_u128(1), State::Queued);
        assert_eq!(told(swept), Claim::Duplicate(found(1, State::Queued)));
    }

    #[test]
    fn a_row_in_a_state_that_only_a_newer_program_knows_is_not_ours_to_take() {
        let mut row = own(State::Queued).unwrap();
        row.found.state = Word::Foreign("asleep".into());
        let view = View { own: Some(row.clone()), ..clear() };
        assert_eq!(why_not_claimed(&view, &request(QUEUED)), Some(Claim::Duplicate(row.found)));
    }

    #[test]
    fn another_row_in_the_queue_is_a_duplicate() {
        let view = View { own: own(State::Queued), ..clear() };
        let duplicate = Some(Claim::Duplicate(found(1, State::Queued)));
        assert_eq!(why_not_claimed(&view, &request(FRESH)), duplicate);
        assert_eq!(why_not_claimed(&view, &request(Entry::Queued(FiringId(2)))), duplicate);
    }
}
