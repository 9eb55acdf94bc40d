//! The rows of the book.

use std::time::Duration;

use runner::internal::firing::Fence;
use runner::internal::firing::{Delivery, Firing, JobName, Origin, Reason, State};
use runner::internal::ledger::{Due, FiringId, FiringRow, Found, JobRow, Run, Running, Won};
use uuid::Uuid;

use super::{Millis, instant};

/// What makes a firing one: namespace, job, instant, shard, trigger_key.
pub(crate) type Key = (String, String, Millis, u32, String);

/// One row of `runner_jobs`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Job {
    pub(crate) name: String,
    pub(crate) known_since: Millis,
    pub(crate) reconciled_until: Option<Millis>,
    pub(crate) spec_hash: String,
    pub(crate) paused: Option<(Millis, String, String)>,
    pub(crate) pruned_before: Option<Millis>,
}

impl Job {
    /// Up to where gaps have been decided.
    pub(super) fn decided_until(&self) -> Millis {
        self.reconciled_until.map_or(self.known_since, |until| until.max(self.known_since))
    }

    /// Whether retention has passed over this instant.
    pub(super) fn is_pruned(&self, scheduled_at: Millis) -> bool {
        self.pruned_before.is_some_and(|before| scheduled_at < before)
    }

    pub(crate) fn shown(&self) -> JobRow {
        let (at, by, note) = match &self.paused {
            Some((at, by, note)) => (Some(instant(*at)), Some(by.clone()), Some(note.clone())),
            None => (None, None, None),
        };
        JobRow {
            name: self.name.clone(),
            known_since: instant(self.known_since),
            reconciled_until: self.reconciled_until.map(instant),
            spec_hash: self.spec_hash.clone(),
            paused_at: at,
            paused_by: by,
            paused_note: note,
            pruned_before: self.pruned_before.map(instant),
        }
    }
}

/// One row of `runner_firings`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) id: FiringId,
    pub(crate) namespace: String,
    pub(crate) job: JobName,
    pub(crate) scheduled_at: Millis,
    pub(crate) shard: u32,
    pub(crate) trigger_key: String,
    pub(crate) origin: Origin,
    pub(crate) state: State,
    pub(crate) reason: Option<Reason>,
    pub(crate) attempt: u32,
    pub(crate) crashes: u32,
    pub(crate) fence: Option<i64>,
    pub(crate) claim_id: Option<Uuid>,
    pub(crate) owner: Option<String>,
    pub(crate) exclusive: bool,
    pub(crate) delivery: Delivery,
    pub(crate) due_at: Option<Millis>,
    pub(crate) expires_at: Option<Millis>,
    pub(crate) lease_until: Option<Millis>,
    pub(crate) cancel_requested: bool,
    pub(crate) created_at: Millis,
    pub(crate) started_at: Option<Millis>,
    pub(crate) finished_at: Option<Millis>,
    pub(crate) error: Option<String>,
    pub(crate) output: Option<String>,
}

impl Row {
    /// A row of this firing that has not run; it gets its number when it is written.
    pub(super) fn new(namespace: &str, firing: &Firing, state: State, reason: Reason, now: Millis) -> Self {
        Self {
            id: FiringId(0),
            namespace: namespace.to_owned(),
            job: firing.job.clone(),
            scheduled_at: firing.scheduled_at.timestamp_millis(),
            shard: firing.shard,
            trigger_key: firing.trigger_key.clone(),
            origin: firing.origin,
            state,
            reason: Some(reason),
            attempt: 0,
            crashes: 0,
            fence: None,
            claim_id: None,
            owner: None,
            exclusive: false,
            delivery: Delivery::AtLeastOnce,
            due_at: None,
            expires_at: None,
            lease_until: None,
            cancel_requested: false,
            created_at: now,
            started_at: None,
            finished_at: state.is_terminal().then_some(now),
            error: None,
            output: None,
        }
    }

    pub(super) fn key(&self) -> Key {
        (
            self.namespace.clone(),
            self.job.to_string(),
            self.scheduled_at,
            self.shard,
            self.trigger_key.clone(),
        )
    }

    pub(super) fn is_of(&self, namespace: &str, job: &str) -> bool {
        self.namespace == namespace && self.job.as_str() == job
    }

    pub(super) fn won(&self, failures: u32) -> Option<Won> {
        Some(Won {
            id: self.id,
            fence: Fence(self.fence?),
            attempt: self.attempt,
            crashes: self.crashes,
            failures,
            started_at: instant(self.started_at?),
        })
    }

    pub(super) fn found(&self) -> Found {
        Found {
            id: self.id,
            scheduled_at: instant(self.scheduled_at),
            state: self.state.into(),
            reason: self.reason.map(Into::into),
            owner: self.owner.clone(),
        }
    }

    pub(super) fn due(&self) -> Due {
        Due {
            id: self.id,
            firing: Firing {
                job: self.job.clone(),
                scheduled_at: instant(self.scheduled_at),
                shard: self.shard,
                trigger_key: self.trigger_key.clone(),
                origin: self.origin,
            },
            attempt: self.attempt,
            reason: self.reason.map(Into::into),
        }
    }

    pub(super) fn seen_running(&self, now: Millis) -> Option<Running> {
        let lease_until = self.lease_until?;
        Some(Running {
            run: Run { id: self.id, fence: Fence(self.fence?) },
            job: self.job.to_string(),
            scheduled_at: instant(self.scheduled_at),
            owner: self.owner.clone()?,
            delivery: self.delivery.into(),
            lease_until: instant(lease_until),
            remaining: Duration::from_millis(u64::try_from(lease_until - now).unwrap_or(0)),
        })
    }

    pub(crate) fn shown(&self) -> FiringRow {
        FiringRow {
            id: self.id,
            job: self.job.to_string(),
            scheduled_at: instant(self.scheduled_at),
            shard: self.shard,
            trigger_key: self.trigger_key.clone(),
            origin: self.origin.into(),
            state: self.state.into(),
            reason: self.reason.map(Into::into),
            attempt: self.attempt,
            crashes: self.crashes,
            fence: self.fence,
            claim_id: self.claim_id,
            owner: self.owner.clone(),
            exclusive: self.exclusive,
            delivery: self.delivery.into(),
            due_at: self.due_at.map(instant),
            expires_at: self.expires_at.map(instant),
            lease_until: self.lease_until.map(instant),
            cancel_requested: self.cancel_requested,
            created_at: instant(self.created_at),
            started_at: self.started_at.map(instant),
            finished_at: self.finished_at.map(instant),
            error: self.error.clone(),
            output: self.output.clone(),
        }
    }
}
