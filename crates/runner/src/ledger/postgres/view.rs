//! Reads in one statement everything that can forbid a row.

use chrono::{DateTime, Utc};
use sqlx::postgres::PgRow;

use super::PostgresLedger;
use super::connection::{Session, Statement};
use super::failure::Failure;
use super::rows::{self, get, int, nominal};
use crate::firing::{Firing, FiringId};
use crate::rules::{Found, KnownJob, OwnRow, View};

impl PostgresLedger {
    /// What forbids a row for `firing`. It is read after a statement took no effect. The reason may be gone by
    /// then.
    pub(super) async fn look(&self, session: &mut Session<'_>, firing: &Firing) -> Result<View, Failure> {
        let row = session.row(self.of(include_str!("sql/refusal.sql"), firing)).await?;
        view(&row.ok_or_else(|| Failure::Corrupt("the look at a firing gave no row".into()))?)
    }

    /// A statement whose first five arguments are the identity of `firing`.
    pub(super) fn of<'q>(&'q self, sql: &'static str, firing: &'q Firing) -> Statement<'q> {
        sqlx::query(sql)
            .bind(&*self.namespace)
            .bind(firing.job.as_str())
            .bind(nominal(firing.scheduled_at))
            .bind(int(firing.shard))
            .bind(&firing.trigger_key)
    }
}

fn view(row: &PgRow) -> Result<View, Failure> {
    let job = if get(row, "registered")? {
        Some(KnownJob { paused: get(row, "paused")?, pruned: get(row, "pruned")? })
    } else {
        None
    };
    let own = match get::<Option<i64>>(row, "id")? {
        Some(_) => Some(own_row(row)?),
        None => None,
    };
    let running = match get::<Option<i64>>(row, "other_id")? {
        Some(id) => Some(other_run(row, id)?),
        None => None,
    };
    Ok(View { now: get(row, "now")?, job, own, running, one_waits: get(row, "one_waits")? })
}

fn own_row(row: &PgRow) -> Result<OwnRow, Failure> {
    let won = match get::<Option<i64>>(row, "fence")? {
        Some(_) => Some(rows::won(row)?),
        None => None,
    };
    Ok(OwnRow {
        found: rows::found(row)?,
        claim_id: get(row, "claim_id")?,
        won,
        due_at: get::<Option<DateTime<Utc>>>(row, "due_at")?,
    })
}

fn other_run(row: &PgRow, id: i64) -> Result<Found, Failure> {
    Ok(Found {
        id: FiringId(id),
        scheduled_at: get(row, "other_scheduled_at")?,
        state: rows::word(row, "other_state")?,
        reason: rows::maybe_word(row, "other_reason")?,
        owner: get(row, "other_owner")?,
    })
}
