//! The ledger's rows, and each of its statements as one indivisible step.
//!
//! A statement here has the conditions of the .sql file of the same name, but for those on time:
//! any lease may be over, any row due and any row expired, whenever the adversary likes.

use super::conditions::Condition;
use super::record::{Breach, Record};
use super::setting::{Delivery, Setting};

/// Number of a firing, from 0, in the order of `scheduled_at`.
pub(crate) type Firing = u8;
/// From 1, as minted.
pub(crate) type Fence = u8;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Reason {
    CatchUp,
    Retry,
    Interrupted,
    OwnerLost,
    Error,
    CrashLoop,
    Expired,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum State {
    Queued(Reason),
    Running,
    Succeeded,
    Failed(Reason),
    Lost(Reason),
    Cancelled,
    Skipped,
}

impl State {
    pub(crate) fn is_terminal(self) -> bool {
        !matches!(self, Self::Queued(_) | Self::Running)
    }

    pub(crate) fn is_queued(self) -> bool {
        matches!(self, Self::Queued(_))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Row {
    pub(crate) state: State,
    pub(crate) attempt: u8,
    pub(crate) crashes: u8,
    /// Of the newest claim, and its `claim_id`; kept when the run ends.
    pub(crate) fence: Fence,
    pub(crate) claim_id: u8,
    /// How often the lease was moved since the claim; none while nothing runs. Two claims may have
    /// the same lease: clocks are not trusted to tell them apart.
    pub(crate) lease: Option<u8>,
    pub(crate) cancel_requested: bool,
    /// Fence and reason of each superseded attempt: `runner_attempts`.
    pub(crate) superseded: Vec<(Fence, Reason)>,
    /// It was `lost` and took its owner's late result.
    pub(crate) was_lost: bool,
    /// How many effects the job had at the newest claim, for the comparison at the commit.
    effects_before: usize,
}

/// One try to win a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Claim {
    pub(crate) firing: Firing,
    pub(crate) claim_id: u8,
    /// The firing's row waits in the queue, or there is none yet.
    pub(crate) queued: bool,
}

/// A licensed run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Run {
    pub(crate) firing: Firing,
    pub(crate) fence: Fence,
}

/// How a run is to be recorded; `Queued` is a requeue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Settlement {
    pub(crate) run: Run,
    pub(crate) state: State,
    pub(crate) crashed: bool,
}

/// A running row as a sweeper saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Sighting {
    pub(crate) firing: Firing,
    fence: Fence,
    lease: Option<u8>,
}

/// Why a claim got no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Refusal {
    Duplicate,
    Pruned,
    Paused,
    Overlap,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ledger {
    pub(crate) rows: Vec<Option<Row>>,
    pub(crate) paused: bool,
    /// Firings below it are older than `pruned_before`.
    pub(crate) pruned_before: Firing,
    /// The newest fence.
    pub(crate) minted: Fence,
    pub(crate) record: Record,
}

impl Ledger {
    pub(crate) fn new(setting: &Setting) -> Self {
        let rows = (0..setting.firings).map(|_| None).collect();
        Self { rows, paused: false, pruned_before: 0, minted: 0, record: Record::default() }
    }

    pub(crate) fn row(&self, firing: Firing) -> Option<&Row> {
        self.rows[usize::from(firing)].as_ref()
    }

    fn is_pruned(&self, firing: Firing) -> bool {
        firing < self.pruned_before
    }

    fn other_runs(&self, firing: Firing) -> bool {
        let running = |row: &Option<Row>| row.as_ref().is_some_and(|row| row.state == State::Running);
        (0..).zip(&self.rows).any(|(other, row)| other != firing && running(row))
    }

    /// Writes `row`, and notes what no statement may do to an earlier one.
    fn write(&mut self, firing: Firing, row: Row) {
        match self.row(firing) {
            None if self.record.removed.contains(&firing) => self.record.breach(Breach::CameBack),
            Some(old) if old.state.is_terminal() && *old != row => {
                let late = matches!(old.state, State::Lost(_))
                    && matches!(row.state, State::Succeeded | State::Failed(Reason::Error))
                    && !old.was_lost
                    && old.fence == row.fence;
                if !late {
                    self.record.breach(Breach::TerminalChanged);
                }
            }
            _ => {}
        }
        self.rows[usize::from(firing)] = Some(row);
    }

    // --- claim -----------------------------------------------------------------------------------

    /// The job's row as a claim reads it under its lock.
    pub(crate) fn gate_is_open(&self, setting: &Setting, claim: Claim) -> bool {
        let (pause, watermark) = if claim.queued {
            (Condition::PauseGateOfQueued, None)
        } else {
            (Condition::PauseGateOfFresh, Some(Condition::WatermarkOfClaim))
        };
        let pruned = watermark.is_some_and(|it| setting.has(it)) && self.is_pruned(claim.firing);
        !(pruned || self.paused && setting.has(pause))
    }

    pub(crate) fn mint(&mut self) -> Fence {
        self.minted += 1;
        self.minted
    }

    /// claim_fresh, claim_queued
    pub(crate) fn claim(&mut self, setting: &Setting, claim: Claim) -> Option<Fence> {
        if self.gate_is_open(setting, claim) { self.take(setting, claim, None) } else { None }
    }

    /// The part of a claim that comes after its gate; all of a piece with it unless a condition is
    /// missing.
    pub(crate) fn take(&mut self, setting: &Setting, claim: Claim, minted: Option<Fence>) -> Option<Fence> {
        let old = self.row(claim.firing);
        let fits = match old {
            None => !claim.queued,
            Some(old) if claim.queued => old.state.is_queued() || !setting.has(Condition::StateOfClaim),
            Some(_) => !setting.has(Condition::OneRow),
        };
        if !fits || setting.has(Condition::RunningIndex) && self.other_runs(claim.firing) {
            return None;
        }
        let old = old.filter(|_| claim.queued).cloned();
        let (attempt, crashes) = old.as_ref().map_or((1, 0), |old| (old.attempt + 1, old.crashes));
        let cancel_requested = old.as_ref().is_some_and(|old| old.cancel_requested);
        let fence = match (&old, minted) {
            (_, Some(minted)) => minted,
            (Some(old), None) if old.fence > 0 && !setting.has(Condition::FenceOfClaim) => old.fence,
            _ => self.mint(),
        };
        if self.paused {
            self.record.breach(Breach::ClaimedWhilePaused);
        }
        if cancel_requested {
            self.record.breach(Breach::ClaimedAfterCancel);
        }
        let row = Row {
            state: State::Running,
            attempt,
            crashes,
            fence,
            claim_id: claim.claim_id,
            lease: Some(0),
            cancel_requested,
            superseded: old.map_or_else(Vec::new, |old| old.superseded),
            was_lost: false,
            effects_before: if setting.firings > 1 { self.record.effects.len() } else { 0 },
        };
        self.write(claim.firing, row);
        self.record.licensed.push(Run { firing: claim.firing, fence });
        Some(fence)
    }

    /// refusal: read after a claim that got no row. `Ok` when an earlier try of the same claim did,
    /// `Err(None)` when nothing stands in the way any more.
    pub(crate) fn look(&mut self, setting: &Setting, claim: Claim) -> Result<Fence, Option<Refusal>> {
        match self.row(claim.firing) {
            Some(row)
                if (row.state == State::Running || !setting.has(Condition::StateOfRepeatedClaim))
                    && (row.claim_id == claim.claim_id
                        || !setting.has(Condition::ClaimIdOfRepeatedClaim)) =>
            {
                Ok(self.answer_that_it_is_yours(claim.firing, row.fence))
            }
            Some(row) if !claim.queued || !row.state.is_queued() => Err(Some(Refusal::Duplicate)),
            None if claim.queued || self.is_pruned(claim.firing) => Err(Some(Refusal::Pruned)),
            _ if self.paused => Err(Some(Refusal::Paused)),
            _ if self.other_runs(claim.firing) => Err(Some(Refusal::Overlap)),
            _ => Err(None),
        }
    }

    /// confirm. `expected` is the fence that the claim would have got had nobody come between.
    pub(crate) fn confirm(&mut self, setting: &Setting, claim: Claim, expected: Fence) -> Option<Fence> {
        if !setting.has(Condition::AskAfterUnknown) {
            return Some(expected);
        }
        let row = self.row(claim.firing)?;
        let mine = if !setting.has(Condition::ClaimIdNotFence) {
            row.fence == expected
        } else {
            row.claim_id == claim.claim_id || !setting.has(Condition::ClaimIdNotOwner)
        };
        if !mine || row.state != State::Running && setting.has(Condition::StateOfConfirm) {
            return None;
        }
        Some(self.answer_that_it_is_yours(claim.firing, row.fence))
    }

    /// Notes when somebody is told to go on under a fence that is void at that very moment.
    fn answer_that_it_is_yours(&mut self, firing: Firing, fence: Fence) -> Fence {
        let row = self.row(firing);
        if !row.is_some_and(|row| row.state == State::Running && row.fence == fence) {
            self.record.breach(Breach::VoidLicence);
        }
        fence
    }

    // --- keep and end ----------------------------------------------------------------------------

    /// heartbeat. Whether the run is still its owner's, and then whether a cancel was asked for.
    pub(crate) fn heartbeat(&mut self, setting: &Setting, run: Run) -> Option<bool> {
        let mut row = self.row(run.firing)?.clone();
        let mine = row.fence == run.fence || !setting.has(Condition::FenceOfHeartbeat);
        if !mine || row.state != State::Running && setting.has(Condition::StateOfHeartbeat) {
            return None;
        }
        let cancel_requested = row.cancel_requested;
        self.answer_that_it_is_yours(run.firing, run.fence);
        if row.state == State::Running {
            let moved = row.lease.map_or(0, |lease| lease.saturating_add(1).min(setting.heartbeats));
            row.lease = Some(moved);
            self.write(run.firing, row);
        }
        Some(cancel_requested)
    }

    fn end(&mut self, run: Run, row: Row) {
        if row.fence != run.fence {
            self.record.breach(Breach::ForeignEnd);
        }
        self.record.end(run, row.state);
        self.write(run.firing, Row { lease: None, ..row });
    }

    /// settle_terminal, settle_requeue
    pub(crate) fn settle(&mut self, setting: &Setting, settlement: Settlement) -> bool {
        let Settlement { run, state, crashed } = settlement;
        let Some(mut row) = self.row(run.firing).cloned() else { return false };
        let (fence, running) = match state {
            State::Queued(_) => (Condition::FenceOfRequeue, Condition::StateOfRequeue),
            _ => (Condition::FenceOfSettle, Condition::StateOfSettle),
        };
        let is_result = matches!(state, State::Succeeded | State::Failed(_));
        let takes_late = matches!(row.state, State::Lost(_))
            && !state.is_queued()
            && (is_result || !setting.has(Condition::LateSettleIsAResult));
        let fits = row.state == State::Running || takes_late || !setting.has(running);
        if !fits || row.fence != run.fence && setting.has(fence) {
            return false;
        }
        row.was_lost = matches!(row.state, State::Lost(_));
        row.crashes += u8::from(crashed);
        row.state = match state {
            State::Queued(_) if row.cancel_requested && setting.has(Condition::CancelOfRequeue) => {
                State::Cancelled
            }
            State::Queued(reason) => {
                if setting.has(Condition::HistoryOfRequeue) {
                    row.superseded.push((row.fence, reason));
                }
                state
            }
            _ => state,
        };
        self.end(run, row);
        true
    }

    /// settle_found: after a settle that changed nothing, whether an earlier try of it did.
    pub(crate) fn settle_found(&mut self, setting: &Setting, settlement: Settlement) -> bool {
        let Settlement { run, state, .. } = settlement;
        let found = self.row(run.firing).is_some_and(|row| {
            let mine = row.fence == run.fence || !setting.has(Condition::FenceOfFound);
            let so = row.state == state || !setting.has(Condition::EndingOfFound);
            let cancelled = state.is_queued()
                && row.state == State::Cancelled
                && row.cancel_requested
                && setting.has(Condition::CancelOfFound)
                && (!row.superseded.iter().any(|(fence, _)| *fence == run.fence)
                    || !setting.has(Condition::NoHistoryOfFound));
            let before = |&(fence, reason): &(Fence, Reason)| {
                fence == run.fence && state == State::Queued(reason) && setting.has(Condition::HistoryOfFound)
            };
            mine && (so || cancelled) || row.superseded.iter().any(before)
        });
        let removed = self.record.removed.contains(&run.firing);
        // Of a row that is gone nothing can be known.
        if found != self.record.has_ended(run, state) && (found || !removed) {
            self.record.breach(Breach::WrongAnswer);
        }
        found
    }

    /// The commit of the effect and its settle, as one.
    pub(crate) fn commit(&mut self, setting: &Setting, run: Run) -> bool {
        let Some(row) = self.row(run.firing).cloned() else { return false };
        let mine = row.fence == run.fence || !setting.has(Condition::FenceOfEffect);
        let running = row.state == State::Running || !setting.has(Condition::StateOfEffect);
        if !(mine && running) {
            return false;
        }
        if setting.firings > 1 && row.effects_before != self.record.effects.len() {
            self.record.breach(Breach::Interleaved);
        }
        self.record.effects.push(run);
        self.end(run, Row { state: State::Succeeded, ..row });
        true
    }

    /// What the missing transaction would do: the effect commits first, the settle is tried next.
    pub(crate) fn commit_apart(&mut self, run: Run) -> bool {
        self.record.effects.push(run);
        let row = self.row(run.firing).filter(|row| row.state == State::Running && row.fence == run.fence);
        let Some(row) = row.cloned() else { return false };
        self.end(run, Row { state: State::Succeeded, ..row });
        true
    }

    // --- upkeep ----------------------------------------------------------------------------------

    pub(crate) fn sight(&self, firing: Firing) -> Option<Sighting> {
        let row = self.row(firing).filter(|row| row.state == State::Running)?;
        Some(Sighting { firing, fence: row.fence, lease: row.lease })
    }

    /// sweep
    pub(crate) fn sweep(&mut self, setting: &Setting, seen: Sighting) -> bool {
        let Some(mut row) = self.row(seen.firing).cloned() else { return false };
        let as_seen = (row.fence == seen.fence || !setting.has(Condition::FenceOfSweep))
            && (row.lease == seen.lease || !setting.has(Condition::LeaseOfSweep));
        if !as_seen || row.state != State::Running && setting.has(Condition::StateOfSweep) {
            return false;
        }
        if row.fence != seen.fence || row.lease != seen.lease {
            self.record.breach(Breach::SweptThoughMoved);
        }
        let at_most_once = setting.delivery == Delivery::AtMostOnce;
        row.state = if at_most_once && setting.has(Condition::DeliveryOfSweep) {
            State::Lost(Reason::OwnerLost)
        } else if row.crashes + 1 > setting.max_crashes && setting.has(Condition::CrashLimitOfSweep) {
            State::Failed(Reason::CrashLoop)
        } else if row.cancel_requested && setting.has(Condition::CancelOfSweep) {
            State::Cancelled
        } else {
            if setting.has(Condition::HistoryOfSweep) {
                row.superseded.push((row.fence, Reason::OwnerLost));
            }
            State::Queued(Reason::OwnerLost)
        };
        row.crashes += 1;
        self.end(Run { firing: seen.firing, fence: row.fence }, row);
        true
    }

    /// cancel
    pub(crate) fn cancel(&mut self, setting: &Setting, firing: Firing) -> bool {
        let Some(mut row) = self.row(firing).cloned() else { return false };
        if row.state.is_terminal() && setting.has(Condition::StateOfCancel) {
            return false;
        }
        row.cancel_requested = true;
        if row.state.is_queued() {
            row.state = State::Cancelled;
        }
        self.write(firing, row);
        true
    }

    /// expire
    pub(crate) fn expire(&mut self, firing: Firing) -> bool {
        let Some(mut row) = self.row(firing).filter(|row| row.state.is_queued()).cloned() else {
            return false;
        };
        row.state = if row.attempt == 0 { State::Skipped } else { State::Failed(Reason::Expired) };
        self.write(firing, row);
        true
    }

    /// prune, with a cut behind `firing`
    pub(crate) fn prune(&mut self, setting: &Setting, firing: Firing) {
        self.pruned_before = self.pruned_before.max(firing + 1);
        for firing in 0..=firing {
            let Some(row) = self.row(firing) else { continue };
            let ended = row.state.is_terminal();
            if !ended && setting.has(Condition::EndedBeforePrune) {
                continue;
            }
            if !ended {
                self.record.breach(Breach::OpenRowRemoved);
            }
            self.rows[usize::from(firing)] = None;
            self.record.removed.insert(firing);
        }
    }

    /// decide, enqueue: a row that waits, `Queued(CatchUp)`; skip: a row that says why not.
    pub(crate) fn insert(&mut self, setting: &Setting, firing: Firing, state: State) -> bool {
        let (watermark, gated) = match state {
            State::Skipped => (Condition::WatermarkOfSkip, false),
            _ => (Condition::WatermarkOfEnqueue, true),
        };
        let forbidden = self.is_pruned(firing) && setting.has(watermark) || gated && self.paused;
        if forbidden || self.row(firing).is_some() {
            return false;
        }
        let row = Row {
            state,
            attempt: 0,
            crashes: 0,
            fence: 0,
            claim_id: 0,
            lease: None,
            cancel_requested: false,
            superseded: Vec::new(),
            was_lost: false,
            effects_before: 0,
        };
        self.write(firing, row);
        true
    }
}
