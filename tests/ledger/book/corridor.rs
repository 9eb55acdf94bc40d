//! What the corridor of a firing writes.

use std::time::Duration;

use runner::firing::{Delivery, State};
use runner::ledger::{
    AttemptRow, Claim, ClaimRequest, Ending, Entry, FiringId, Heartbeat, Run, Settled, Settlement, Skip,
    Skipped, Suspect, Swept, Won,
};

use super::{Book, Flaw, Millis, Row, instant, millis};

/// How far a replica's clock may run ahead without its claims being sent back.
const SKEW: Millis = 100;

impl Book {
    pub(crate) fn claim(&mut self, namespace: &str, request: &ClaimRequest, now: Millis) -> Claim {
        if let Some(refusal) = self.refusal(namespace, request, now) {
            return refusal;
        }
        let firing = &request.firing;
        let id = match request.entry {
            Entry::Queued(id) => id,
            Entry::Fresh { .. } => self.insert(Row::new(namespace, firing, State::Queued, "", now)),
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

    /// What stands in the way of a claim, in the order in which it is told.
    fn refusal(&self, namespace: &str, request: &ClaimRequest, now: Millis) -> Option<Claim> {
        let firing = &request.firing;
        let scheduled_at = firing.scheduled_at.timestamp_millis();
        let key = (
            namespace.to_owned(),
            firing.job.to_string(),
            scheduled_at,
            firing.shard,
            firing.trigger_key.clone(),
        );
        let found = self.once.get(&key).and_then(|id| self.rows.get(id));
        let job = self.job(namespace, firing.job.as_str());
        let (due_at, late_after) = match (request.entry, found) {
            (_, Some(row)) if row.state == State::Running && row.claim_id == Some(request.claim_id) => {
                return row.won(self.failures(row.id)).map(Claim::Won);
            }
            (Entry::Queued(id), Some(row)) if row.state == State::Queued && row.id == id => {
                (row.due_at.unwrap_or(now), None)
            }
            (Entry::Fresh { .. }, Some(row))
                if self.has(Flaw::ClaimsTwice) && row.state == State::Succeeded =>
            {
                (now, None)
            }
            (_, Some(row)) => return Some(Claim::Duplicate(row.found())),
            (Entry::Fresh { not_after }, None) => {
                (scheduled_at - SKEW, Some(scheduled_at.saturating_add(millis(not_after))))
            }
            (Entry::Queued(_), None) if job.is_some() => return Some(Claim::Pruned),
            (Entry::Queued(_), None) => return Some(Claim::Unregistered),
        };
        let Some(job) = job else { return Some(Claim::Unregistered) };
        if late_after.is_some() && job.is_pruned(scheduled_at) {
            return Some(Claim::Pruned);
        }
        if job.paused.is_some() {
            return Some(Claim::Paused);
        }
        if now < due_at && !self.has(Flaw::ClaimsEarly) {
            let wait = due_at.max(scheduled_at) - now;
            return Some(Claim::TooEarly(Duration::from_millis(u64::try_from(wait).unwrap_or(0))));
        }
        if late_after.is_some_and(|late_after| late_after < now) {
            return Some(Claim::TooLate);
        }
        if !request.exclusive || self.has(Flaw::Overlaps) {
            return None;
        }
        self.blocker(namespace, firing.job.as_str(), firing.shard).map(|row| Claim::Overlap(row.found()))
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
            Ending::Terminal { state, reason } => Some((*state, reason.clone())),
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
                reason: reason.clone(),
                error: error.clone(),
                output: output.clone(),
            });
            (row.state, row.reason) = (State::Queued, Some(reason.clone()));
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
        let row = Row {
            error: skip.detail.clone(),
            ..Row::new(namespace, firing, State::Skipped, &skip.reason, now)
        };
        if let Some(there) = self.once.get(&row.key()).and_then(|id| self.rows.get(id)) {
            return Skipped::AlreadyThere(there.state);
        }
        let takes = |job: &super::Job| !job.is_pruned(row.scheduled_at);
        if !self.job(namespace, firing.job.as_str()).is_some_and(takes) {
            return Skipped::Refused;
        }
        if skip.only_while_running && self.blocker(namespace, firing.job.as_str(), firing.shard).is_none() {
            return Skipped::NothingRunning;
        }
        self.insert(row);
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
        let terminal =
            |state, reason: Option<&str>| Ending::Terminal { state, reason: reason.map(Into::into) };
        let ending = if row.delivery == Delivery::AtMostOnce && !forgets {
            terminal(State::Lost, Some("owner_lost"))
        } else if row.crashes + 1 > suspect.max_crashes {
            terminal(State::Failed, Some("crash_loop"))
        } else if row.cancel_requested {
            terminal(State::Cancelled, None)
        } else {
            let (due_in, expires_in) = (Duration::ZERO, suspect.expires_in);
            Ending::Requeue { reason: "owner_lost".into(), due_in, expires_in }
        };
        let job = row.job.to_string();
        let settlement = Settlement { run: suspect.run, ending, crashed: true, error: None, output: None };
        self.end(namespace, &settlement, now);
        let row = self.rows.get(&suspect.run.id)?;
        Some(Swept { run: suspect.run, job, state: row.state, reason: row.reason.clone() })
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
