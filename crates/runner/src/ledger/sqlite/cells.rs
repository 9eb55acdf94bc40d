//! From columns to values and back. A column that cannot be read is an error, never a default.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, Utc};
use sqlx::Row;
use sqlx::sqlite::SqliteRow;
use uuid::Uuid;

use super::fault::Fault;
use crate::firing::{Fence, Firing, JobName, Vocabulary, Word};
use crate::ledger::{AttemptRow, Due, FiringId, FiringRow, Found, JobRow, Running, Won};
use crate::ledger::{Counted, Expired, Run};

/// A duration in milliseconds, at most a thousand years. With far longer ones SQLite's integers would overflow
/// into floating point, which no column accepts.
pub(super) fn millis(span: Duration) -> i64 {
    const MAX: i64 = 1_000 * 366 * 86_400_000;
    i64::try_from(span.as_millis()).map_or(MAX, |millis| millis.min(MAX))
}

/// A duration from a column of milliseconds. A negative one counts as zero.
pub(super) fn span(millis: i64) -> Duration {
    Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

pub(super) fn integer(row: &SqliteRow, column: &str) -> Result<i64, Fault> {
    Ok(row.try_get(column)?)
}

pub(super) fn flag(row: &SqliteRow, column: &str) -> Result<bool, Fault> {
    Ok(integer(row, column)? != 0)
}

pub(super) fn text(row: &SqliteRow, column: &str) -> Result<Option<String>, Fault> {
    Ok(row.try_get(column)?)
}

/// A column with a word, which may be one of a newer program.
pub(super) fn word<T: Vocabulary>(row: &SqliteRow, column: &str) -> Result<Word<T>, Fault> {
    Ok(Word::read(row.try_get(column)?))
}

/// A column with a word or NULL.
fn maybe_word<T: Vocabulary>(row: &SqliteRow, column: &str) -> Result<Option<Word<T>>, Fault> {
    Ok(row.try_get::<Option<&str>, _>(column)?.map(Word::read))
}

/// A column that this statement has just written, so its word is one of this program.
fn our_word<T: FromStr<Err: Display>>(row: &SqliteRow, column: &str) -> Result<T, Fault> {
    let text: &str = row.try_get(column)?;
    text.parse().map_err(|error| Fault::corrupt(column, error))
}

pub(super) fn instant(row: &SqliteRow, column: &str) -> Result<DateTime<Utc>, Fault> {
    from_millis(column, integer(row, column)?)
}

pub(super) fn won(row: &SqliteRow) -> Result<Won, Fault> {
    Ok(Won {
        id: id(row)?,
        fence: Fence(integer(row, "fence")?),
        attempt: small(row, "attempt")?,
        crashes: small(row, "crashes")?,
        failures: small(row, "failures")?,
        started_at: instant(row, "started_at")?,
    })
}

/// The row of the firing itself; `None` where the join found none.
pub(super) fn found(row: &SqliteRow) -> Result<Option<Found>, Fault> {
    found_as(row, ["id", "scheduled_at", "state", "reason", "owner"])
}

/// The other run that forbids the row.
pub(super) fn blocker(row: &SqliteRow) -> Result<Option<Found>, Fault> {
    found_as(row, ["blocker_id", "blocker_scheduled_at", "blocker_state", "blocker_reason", "blocker_owner"])
}

fn found_as(row: &SqliteRow, columns: [&str; 5]) -> Result<Option<Found>, Fault> {
    let [id, scheduled_at, state, reason, owner] = columns;
    let Some(id) = row.try_get::<Option<i64>, _>(id)? else { return Ok(None) };
    Ok(Some(Found {
        id: FiringId(id),
        scheduled_at: instant(row, scheduled_at)?,
        state: word(row, state)?,
        reason: maybe_word(row, reason)?,
        owner: text(row, owner)?,
    }))
}

/// `None` for a firing that only a newer program can run.
pub(super) fn due(row: &SqliteRow) -> Result<Option<Due>, Fault> {
    let Some(origin) = word(row, "origin")?.known() else { return Ok(None) };
    let job: &str = row.try_get("job")?;
    Ok(Some(Due {
        id: id(row)?,
        firing: Firing {
            job: JobName::new(job).map_err(|error| Fault::corrupt("job", error))?,
            scheduled_at: instant(row, "scheduled_at")?,
            shard: small(row, "shard")?,
            trigger_key: row.try_get("trigger_key")?,
            origin,
        },
        attempt: small(row, "attempt")?,
        reason: maybe_word(row, "reason")?,
    }))
}

pub(super) fn expired(row: &SqliteRow) -> Result<Expired, Fault> {
    Ok(Expired {
        id: id(row)?,
        job: row.try_get("job")?,
        state: our_word(row, "state")?,
        reason: our_word(row, "reason")?,
    })
}

pub(super) fn running(row: &SqliteRow) -> Result<Running, Fault> {
    Ok(Running {
        run: Run { id: id(row)?, fence: Fence(integer(row, "fence")?) },
        job: row.try_get("job")?,
        scheduled_at: instant(row, "scheduled_at")?,
        owner: row.try_get("owner")?,
        delivery: word(row, "delivery")?,
        lease_until: instant(row, "lease_until")?,
        remaining: span(integer(row, "remaining")?),
    })
}

pub(super) fn firing(row: &SqliteRow) -> Result<FiringRow, Fault> {
    Ok(FiringRow {
        id: id(row)?,
        job: row.try_get("job")?,
        scheduled_at: instant(row, "scheduled_at")?,
        shard: small(row, "shard")?,
        trigger_key: row.try_get("trigger_key")?,
        origin: word(row, "origin")?,
        state: word(row, "state")?,
        reason: maybe_word(row, "reason")?,
        attempt: small(row, "attempt")?,
        crashes: small(row, "crashes")?,
        fence: row.try_get("fence")?,
        claim_id: claim_id(row)?,
        owner: text(row, "owner")?,
        exclusive: flag(row, "exclusive")?,
        delivery: word(row, "delivery")?,
        due_at: maybe_instant(row, "due_at")?,
        expires_at: maybe_instant(row, "expires_at")?,
        lease_until: maybe_instant(row, "lease_until")?,
        cancel_requested: flag(row, "cancel_requested")?,
        created_at: instant(row, "created_at")?,
        started_at: maybe_instant(row, "started_at")?,
        finished_at: maybe_instant(row, "finished_at")?,
        error: text(row, "error")?,
        output: text(row, "output")?,
    })
}

pub(super) fn attempt(row: &SqliteRow) -> Result<AttemptRow, Fault> {
    Ok(AttemptRow {
        attempt: small(row, "attempt")?,
        fence: integer(row, "fence")?,
        owner: row.try_get("owner")?,
        started_at: maybe_instant(row, "started_at")?,
        ended_at: instant(row, "ended_at")?,
        reason: word(row, "reason")?,
        error: text(row, "error")?,
        output: text(row, "output")?,
    })
}

pub(super) fn job(row: &SqliteRow) -> Result<JobRow, Fault> {
    Ok(JobRow {
        name: row.try_get("name")?,
        known_since: instant(row, "known_since")?,
        reconciled_until: maybe_instant(row, "reconciled_until")?,
        spec_hash: row.try_get("spec_hash")?,
        paused_at: maybe_instant(row, "paused_at")?,
        paused_by: text(row, "paused_by")?,
        paused_note: text(row, "paused_note")?,
        pruned_before: maybe_instant(row, "pruned_before")?,
    })
}

pub(super) fn counted(row: &SqliteRow) -> Result<Counted, Fault> {
    Ok(Counted {
        job: row.try_get("job")?,
        state: word(row, "state")?,
        rows: u64::try_from(integer(row, "rows")?).map_err(|error| Fault::corrupt("rows", error))?,
    })
}

/// The newest claim of the row; `None` before the first.
pub(super) fn claim_id(row: &SqliteRow) -> Result<Option<Uuid>, Fault> {
    let text: Option<&str> = row.try_get("claim_id")?;
    text.map(|text| text.parse().map_err(|error| Fault::corrupt("claim_id", error))).transpose()
}

fn id(row: &SqliteRow) -> Result<FiringId, Fault> {
    Ok(FiringId(integer(row, "id")?))
}

pub(super) fn small(row: &SqliteRow, column: &str) -> Result<u32, Fault> {
    u32::try_from(integer(row, column)?).map_err(|error| Fault::corrupt(column, error))
}

/// An instant or NULL.
pub(super) fn maybe_instant(row: &SqliteRow, column: &str) -> Result<Option<DateTime<Utc>>, Fault> {
    let millis: Option<i64> = row.try_get(column)?;
    millis.map(|millis| from_millis(column, millis)).transpose()
}

fn from_millis(column: &str, millis: i64) -> Result<DateTime<Utc>, Fault> {
    DateTime::from_timestamp_millis(millis)
        .ok_or_else(|| Fault::corrupt(column, format_args!("{millis} ms is no instant")))
}
