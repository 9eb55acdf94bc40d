//! What the corridor of a firing writes.

use std::time::Duration;

use runner::internal::firing::{Delivery, Firing, Reason, State};
use runner::internal::ledger::{
    AttemptRow, Claim, ClaimRequest, Ending, Entry, FiringId, Heartbeat, Run, Settled, Settlement, Skip,
    Skipped, Suspect, Swept, Won,
};

use runner::internal::rules::{KnownJob, LostRun, OwnRow, View, why_not_claimed, why_not_skipped};

use super::{Book, Flaw, Millis, Row, instant, millis};

impl Book {
    pub(crate) fn claim(&mut self, namespace: &str, request: &ClaimRequest, now: Millis) -> Claim {
        if let Some(refusal) = self.refusal(namespace, request, now) {
            return refusal;
        }
        let firing = &request.firing;
        let id = match request.entry {
            Entry::Queued(id) => id,
            Entry::Fresh { .. } => {
                self.insert(Row::new(namespace, firing, State::Queued, Reason::Trigger, now))
            }
        };
        let fence = self.mint();
        self.touched.push(id);
        let row = self.rows.get_mut(&id).expect("it was found or written just now");
        *row = Row {
            state: State::Running,
            reason: None,
            attempt: row.attempt + 1,
            fence: Some(fence),
            claim_id: Some(request.claim_id),
            owner: Some(request.owner.to_string()),
            exclusive: request.exclusive,
            delivery: request.delivery,
            due_at: None,
            expires_at: None,
            lease_until: Some(now + millis(request.lease)),
            started_at: Some(now),
            finished_at: None,
            error: None,
            output: None,
            ..row.clone()
        };
        let row = row.clone();
        Claim::Won(row.won(self.failures(row.id)).expect("a claimed row has a fence and a start"))
    }

    /// What stands in the way of a claim; a flawed book does not see all of it.
    fn refusal(&self, namespace: &str, request: &ClaimRequest, now: Millis) -> Option<Claim> {
        let mut view = self.view(namespace, &request.firing, now);
        let fresh = matches!(request.entry, Entry::Fresh { .. });
        if self.has(Flaw::ClaimsTwice) && fresh {
            view.own = view.own.filter(|own| own.found.state != State::Succeeded);
        }
        if self.has(Flaw::ClaimsEarly) {
            let due = view.own.as_ref().and_then(|own| own.due_at);
            view.now = view.now.max(due.unwrap_or(request.firing.scheduled_at));
        }
        if self.has(Flaw::Overlaps) {
            view.running = None;
        }
        why_not_claimed(&view, request)
    }

    /// Everything that can stand in the way of a row for `firing`.
    pub(super) fn view(&self, namespace: &str, firing: &Firing, now: Millis) -> View {
        let scheduled_at = firing.scheduled_at.timestamp_millis();
        let (job, shard) = (firing.job.as_str(), firing.shard);
        let key = (namespace.to_owned(), job.to_owned(), scheduled_at, shard, firing.trigger_key.clone());
        let own = self.once.get(&key).and_then(|id| self.rows.get(id));
        let waits = |row: &Row| {
            row.state == State::Queued
                && row.reason == Some(Reason::Overlap)
                && row.is_of(namespace, job)
                && row.shard == shard
        };
        View {
            now: instant(now),
            job: self
                .job(namespace, job)
                .map(|job| KnownJob { paused: job.paused.is_some(), pruned: job.is_pruned(scheduled_at) }),
            own: own.map(|row| OwnRow {
                found: row.found(),
                claim_id: row.claim_id,
                won: row.won(self.failures(row.id)),
                due_at: row.due_at.map(instant),
            }),
            running: self.blocker(namespace, job, shard).map(Row::found),
            one_waits: self.rows().any(waits),
        }
    }

    pub(crate) fn confirm(&self, namespace: &str, request: &ClaimRequest) -> Option<Won> {
        let firing = &request.firing;
        let scheduled_at = firing.scheduled_at.timestamp_millis();
        let key = (
            namespace.to_owned(),
            firing.job.to_string(),
            scheduled_at,
            firing.shard,
            firing.trigger_key.clone(),
        );
        let row = self.once.get(&key).and_then(|id| self.rows.get(id))?;
        let ours = row.state == State::Running && row.claim_id == Some(request.claim_id);
        ours.then(|| row.won(self.failures(row.id))).flatten()
    }

    pub(crate) fn heartbeat(&mut self, namespace: &str, run: Run, lease: Duration, now: Millis) -> Heartbeat {
        let forgets = self.has(Flaw::ForgetsHeartbeats);
        match self.running(namespace, run) {
            Some(row) if forgets => Heartbeat::Alive { cancel_requested: row.cancel_requested },
            Some(row) => {
                row.lease_until = Some(now + millis(lease));
                Heartbeat::Alive { cancel_requested: row.cancel_requested }
            }
            None => Heartbeat::Lost,
        }
    }

    pub(crate) fn settle(&mut self, namespace: &str, settlement: &Settlement, now: Millis) -> Settled {
        if self.end(namespace, settlement, now) || self.has_ended_so(namespace, settlement) {
            Settled::Recorded
        } else {
            Settled::Fenced
        }
    }

    /// Ends a run; false if it is not running (any more) under this fence.
    fn end(&mut self, namespace: &str, settlement: &Settlement, now: Millis) -> bool {
        let Settlement { run, ending, crashed, error, output } = settlement;
        let anything = self.has(Flaw::SettlesAnything);
        let Some(row) = self.of_run(namespace, *run) else { return false };
        let may_end = match ending {
            _ if anything => true,
            Ending::Terminal { state: State::Succeeded | State::Failed, .. } => {
                matches!(row.state, State::Running | State::Lost)
            }
            _ => row.state == State::Running,
        };
        if !may_end {
            return false;
        }
        let (id, attempt) = (row.id, row.attempt);
        let mut superseded = None;
        let terminal = match ending {
            Ending::Terminal { state, reason } => Some((*state, *reason)),
            // Someone wants it stopped, so that it must not wait for another run.
            Ending::Requeue { .. } if row.cancel_requested => Some((State::Cancelled, None)),
            Ending::Requeue { .. } => None,
        };
        row.crashes += u32::from(*crashed);
        row.error = error.clone();
        row.output = output.clone();
        row.lease_until = None;
        if let Some((state, reason)) = terminal {
            (row.state, row.reason, row.finished_at) = (state, reason, Some(now));
        } else if let Ending::Requeue { reason, due_in, expires_in } = ending {
            superseded = Some(AttemptRow {
                attempt,
                fence: row.fence.unwrap_or_default(),
                owner: row.owner.clone().unwrap_or_default(),
                started_at: row.started_at.map(instant),
                ended_at: instant(now),
                reason: (*reason).into(),
                error: error.clone(),
                output: output.clone(),
            });
            (row.state, row.reason) = (State::Queued, Some(*reason));
            row.due_at = Some(now + millis(*due_in));
            row.expires_at = Some(now + millis(*expires_in));
        }
        if let Some(attempt) = superseded {
            self.attempts.insert((id, attempt.attempt), attempt);
        }
        true
    }

    /// Whether an earlier try of this settle, whose answer was lost, has taken effect.
    fn has_ended_so(&self, namespace: &str, settlement: &Settlement) -> bool {
        let run = settlement.run;
        let Some(row) = self.rows.get(&run.id).filter(|row| row.namespace == namespace) else { return false };
        let under_it = row.fence == Some(run.fence.0);
        match &settlement.ending {
            Ending::Terminal { state, reason } => under_it && row.state == *state && row.reason == *reason,
            Ending::Requeue { reason, .. } => {
                match self.attempts().find(|(id, old)| *id == run.id && old.fence == run.fence.0) {
                    Some((_, old)) => old.reason == *reason,
                    None => under_it && row.state == State::Cancelled && row.cancel_requested,
                }
            }
        }
    }

    pub(crate) fn skip(&mut self, namespace: &str, skip: &Skip, now: Millis) -> Skipped {
        let firing = &skip.firing;
        if let Some(no) = why_not_skipped(&self.view(namespace, firing, now), skip) {
            return no;
        }
        self.insert(Row {
            error: skip.detail.clone(),
            ..Row::new(namespace, firing, State::Skipped, skip.reason, now)
        });
        Skipped::Recorded
    }

    /// Ends one suspect, if it is still as it was seen.
    pub(crate) fn sweep(&mut self, namespace: &str, suspect: &Suspect, now: Millis) -> Option<Swept> {
        let forgets = self.has(Flaw::RunsLostAgain);
        let seen = suspect.lease_until.timestamp_millis();
        let row = self.running(namespace, suspect.run)?;
        if row.lease_until != Some(seen) || seen > now {
            return None;
        }
        let lost = LostRun {
            delivery: if forgets { Delivery::AtLeastOnce } else { row.delivery },
            crashes: row.crashes,
            max_crashes: suspect.max_crashes,
            crashed: true,
            cancel_requested: row.cancel_requested,
        };
        let ending = lost.fate().of_vanished_owner(suspect.expires_in);
        let job = row.job.to_string();
        let settlement = Settlement { run: suspect.run, ending, crashed: true, error: None, output: None };
        self.end(namespace, &settlement, now);
        let row = self.rows.get(&suspect.run.id)?;
        Some(Swept { run: suspect.run, job, state: row.state, reason: row.reason })
    }

    /// Asks the owner of a running firing to stop, or cancels a queued one.
    pub(crate) fn cancel(&mut self, namespace: &str, id: FiringId, now: Millis) -> bool {
        let Some(row) = self.rows.get_mut(&id).filter(|row| row.namespace == namespace) else { return false };
        match row.state {
            State::Running => {}
            State::Queued => {
                (row.state, row.reason, row.finished_at) = (State::Cancelled, None, Some(now));
            }
            _ => return false,
        }
        row.cancel_requested = true;
        self.touched.push(id);
        true
    }
}
