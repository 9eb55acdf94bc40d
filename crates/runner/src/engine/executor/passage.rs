//! One firing on its way through the corridor: where it comes from, what it has met, how it ends.

use std::time::Duration;

use chrono::{DateTime, Utc};
use lockcore::{BootInstant, Jitter};
use uuid::Uuid;

use crate::config::JobSpec;
use crate::firing::{Firing, Origin, Reason, instant};
use crate::ledger::{Due, Entry, Settled};
use crate::rules::Verdict;
use crate::schedule::delay;

/// How a firing comes to the corridor.
#[derive(Clone, Debug)]
pub(crate) enum Ticket {
    /// It has no row yet.
    Fresh(Firing),
    /// Its row waits in the queue.
    Queued(Due),
}

impl Ticket {
    pub(super) const fn firing(&self) -> &Firing {
        match self {
            Self::Fresh(firing) => firing,
            Self::Queued(due) => &due.firing,
        }
    }

    /// Whether this is the first try of a firing of the schedule. Only then a lock that is held for the same firing,
    /// or its done marker, means that there is nothing to do.
    pub(super) fn is_first_from_schedule(&self) -> bool {
        matches!(self, Self::Fresh(firing) if firing.origin == Origin::Schedule)
    }
}

/// How a firing's walk ended on this replica.
#[derive(Clone, Debug)]
pub(crate) enum Fate {
    /// It ran here.
    Ran {
        /// How it ended.
        verdict: Verdict,
        /// Whether the ledger took the result.
        settled: Option<Settled>,
        /// What it left.
        output: Option<String>,
    },
    /// Another replica has it, or it has a row already.
    Elsewhere,
    /// A row says that it did not run, and why.
    Skipped(Reason),
    /// Its row waits; it is polled again.
    Waiting,
    /// It could not run in time. The queue or the reconciliation brings it back.
    LetGo,
    /// The ledger takes no row for it: retention has passed over it.
    Refused,
    /// This replica is shutting down and had not begun it.
    Drained,
}

/// The result of one walk.
#[derive(Debug)]
pub(super) enum Step {
    /// The firing's fate is known.
    Over(Fate),
    /// Walk again after a pause.
    Again(Duration),
}

/// What a firing carries from one walk to the next.
#[derive(Debug)]
pub(super) struct Passage {
    pub(super) ticket: Ticket,
    /// The same for every claim of this passage, so that a claim whose answer was lost is found again.
    pub(super) claim_id: Uuid,
    /// A claim was sent whose answer never came.
    pub(super) unsure: bool,
    /// Since when something else has stood in the way.
    pub(super) waiting_since: Option<BootInstant>,
    /// Whether people have been told of the run that stands in the way.
    pub(super) told_of_overlap: bool,
    /// Whether people have been told of a key in the lock's place that never expires.
    pub(super) told_of_endless_key: bool,
    tries: u32,
}

impl Passage {
    pub(super) fn new(ticket: Ticket) -> Self {
        Self {
            ticket,
            claim_id: Uuid::new_v4(),
            unsure: false,
            waiting_since: None,
            told_of_overlap: false,
            told_of_endless_key: false,
            tries: 0,
        }
    }

    pub(super) const fn firing(&self) -> &Firing {
        self.ticket.firing()
    }

    /// What the lock is held for. It can be read in redis-cli, and other replicas compare it with theirs.
    pub(super) fn subject(&self) -> String {
        let firing = self.firing();
        let mut subject = instant(firing.scheduled_at);
        if !firing.trigger_key.is_empty() {
            subject.push('/');
            subject.push_str(&firing.trigger_key);
        }
        subject
    }

    /// When the firing is due: its nominal instant and its jitter.
    pub(super) fn due_at(&self, spec: &JobSpec) -> DateTime<Utc> {
        let firing = self.firing();
        firing.scheduled_at + delay(&firing.job, firing.scheduled_at, spec.jitter)
    }

    /// Whether its lateness is measured. A retry is late on purpose, and a manual firing has no due moment of its own.
    pub(super) const fn shows_lateness(&self, attempt: u32) -> bool {
        attempt == 1 && matches!(self.firing().origin, Origin::Schedule | Origin::CatchUp)
    }

    pub(super) fn entry(&self, spec: &JobSpec) -> Entry {
        match &self.ticket {
            Ticket::Fresh(_) => Entry::Fresh { not_after: spec.jitter.saturating_add(spec.start_deadline) },
            Ticket::Queued(due) => Entry::Queued(due.id),
        }
    }

    /// Exponential, with full jitter, so that replicas that failed together do not return together.
    pub(super) fn pause(&mut self, jitter: &Jitter, at_most: Duration) -> Duration {
        self.tries = self.tries.saturating_add(1);
        lockcore::Backoff::new(Duration::from_millis(20), at_most).delay(self.tries, jitter.draw())
    }
}
