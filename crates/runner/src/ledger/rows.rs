//! Rows as people and programs read them: the ledger's own column names.

use chrono::{DateTime, Utc};

use crate::firing::{Delivery, FiringId, Origin, Reason, State, Word};

/// Which rows to read.
#[derive(Clone, Debug, Default)]
pub struct HistoryFilter {
    /// Of one job only.
    pub job: Option<String>,
    /// In one state only.
    pub state: Option<State>,
    /// From this instant on (inclusive).
    pub from: Option<DateTime<Utc>>,
    /// Up to this instant (inclusive).
    pub until: Option<DateTime<Utc>>,
    /// At most so many; 0 means all.
    pub limit: u32,
}

/// One row of `runner_firings`.
#[derive(Clone, Debug, PartialEq)]
pub struct FiringRow {
    /// The row's number.
    pub id: FiringId,
    /// Its job.
    pub job: String,
    /// Its nominal instant.
    pub scheduled_at: DateTime<Utc>,
    /// Its shard.
    pub shard: u32,
    /// What tells it apart from others of the same instant.
    pub trigger_key: String,
    /// Why it exists.
    pub origin: Word<Origin>,
    /// Where it stands.
    pub state: Word<State>,
    /// Why.
    pub reason: Option<Word<Reason>>,
    /// Runs so far.
    pub attempt: u32,
    /// Vanished owners and interruptions so far.
    pub crashes: u32,
    /// The newest fence; none before the first claim.
    pub fence: Option<i64>,
    /// The newest claim.
    pub claim_id: Option<uuid::Uuid>,
    /// The newest owner.
    pub owner: Option<String>,
    /// Whether it excludes other runs.
    pub exclusive: bool,
    /// What happens when an owner is lost.
    pub delivery: Word<Delivery>,
    /// When a queued row may run.
    pub due_at: Option<DateTime<Utc>>,
    /// When a queued row gives up.
    pub expires_at: Option<DateTime<Utc>>,
    /// Until when the owner is believed.
    pub lease_until: Option<DateTime<Utc>>,
    /// Someone wants it stopped.
    pub cancel_requested: bool,
    /// When the row was written.
    pub created_at: DateTime<Utc>,
    /// When the newest attempt was claimed.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// What went wrong.
    pub error: Option<String>,
    /// What it printed or left.
    pub output: Option<String>,
}

/// One row of `runner_attempts`: an attempt that a later one superseded.
#[derive(Clone, Debug, PartialEq)]
pub struct AttemptRow {
    /// Which attempt, from 1.
    pub attempt: u32,
    /// Its fence.
    pub fence: i64,
    /// Its owner.
    pub owner: String,
    /// When it was claimed.
    pub started_at: Option<DateTime<Utc>>,
    /// When it was given up.
    pub ended_at: DateTime<Utc>,
    /// Why: `retry`, `interrupted`, `owner_lost`.
    pub reason: Word<Reason>,
    /// What went wrong.
    pub error: Option<String>,
    /// What it printed or left.
    pub output: Option<String>,
}

/// One row of `runner_jobs`.
#[derive(Clone, Debug, PartialEq)]
pub struct JobRow {
    /// The job.
    pub name: String,
    /// Since when its present schedule holds.
    pub known_since: DateTime<Utc>,
    /// Up to where gaps have been decided.
    pub reconciled_until: Option<DateTime<Utc>>,
    /// Of the present schedule.
    pub spec_hash: String,
    /// Paused since.
    pub paused_at: Option<DateTime<Utc>>,
    /// Paused by.
    pub paused_by: Option<String>,
    /// Paused why.
    pub paused_note: Option<String>,
    /// Retention has passed over instants before this.
    pub pruned_before: Option<DateTime<Utc>>,
}
