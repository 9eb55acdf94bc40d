//! Rows of the tables as the ledger's values.

use std::borrow::Cow;
use std::str::FromStr;
use std::time::Duration;

use chrono::{DateTime, SubsecRound as _, Utc};
use sqlx::postgres::PgRow;
use sqlx::{Decode, Postgres, Row as _, Type};

use super::failure::Failure;
use crate::firing::{Fence, Firing, JobName, UnknownWord, Vocabulary, Word};
use crate::ledger::{AttemptRow, FiringId, FiringRow, Found, JobRow, Run, Won};

/// One column of a row.
pub(super) fn get<'r, T>(row: &'r PgRow, column: &str) -> Result<T, Failure>
where
    T: Decode<'r, Postgres> + Type<Postgres>,
{
    Ok(row.try_get(column)?)
}

/// A column that counts something and is never negative.
pub(super) fn count(row: &PgRow, column: &str) -> Result<u32, Failure> {
    let value: i32 = get(row, column)?;
    u32::try_from(value).map_err(|_| Failure::Corrupt(format!("{column} is {value}")))
}

/// A column with a word, which may be one of a newer program.
pub(super) fn word<T: Vocabulary>(row: &PgRow, column: &str) -> Result<Word<T>, Failure> {
    Ok(Word::read(get(row, column)?))
}

/// A column with a word or NULL.
pub(super) fn maybe_word<T: Vocabulary>(row: &PgRow, column: &str) -> Result<Option<Word<T>>, Failure> {
    Ok(get::<Option<&str>>(row, column)?.map(Word::read))
}

/// A column that this statement has just written, so its word is one of this program.
pub(super) fn our_word<T: FromStr<Err = UnknownWord>>(row: &PgRow, column: &str) -> Result<T, Failure> {
    Ok(get::<&str>(row, column)?.parse()?)
}

pub(super) fn id(row: &PgRow) -> Result<FiringId, Failure> {
    Ok(FiringId(get(row, "id")?))
}

pub(super) fn run(row: &PgRow) -> Result<Run, Failure> {
    Ok(Run { id: id(row)?, fence: Fence(get(row, "fence")?) })
}

pub(super) fn won(row: &PgRow) -> Result<Won, Failure> {
    Ok(Won {
        id: id(row)?,
        fence: Fence(get(row, "fence")?),
        attempt: count(row, "attempt")?,
        crashes: count(row, "crashes")?,
        failures: count(row, "failures")?,
        started_at: get(row, "started_at")?,
    })
}

pub(super) fn found(row: &PgRow) -> Result<Found, Failure> {
    Ok(Found {
        id: id(row)?,
        scheduled_at: get(row, "scheduled_at")?,
        state: word(row, "state")?,
        reason: maybe_word(row, "reason")?,
        owner: get(row, "owner")?,
    })
}

/// The firing of a row; `None` if its origin is a word of a newer program.
pub(super) fn firing(row: &PgRow) -> Result<Option<Firing>, Failure> {
    let Some(origin) = word(row, "origin")?.known() else { return Ok(None) };
    Ok(Some(Firing {
        job: JobName::new(get(row, "job")?).map_err(|error| Failure::Corrupt(error.to_string()))?,
        scheduled_at: get(row, "scheduled_at")?,
        shard: count(row, "shard")?,
        trigger_key: get(row, "trigger_key")?,
        origin,
    }))
}

pub(super) fn firing_row(row: &PgRow) -> Result<FiringRow, Failure> {
    Ok(FiringRow {
        id: id(row)?,
        job: get(row, "job")?,
        scheduled_at: get(row, "scheduled_at")?,
        shard: count(row, "shard")?,
        trigger_key: get(row, "trigger_key")?,
        origin: word(row, "origin")?,
        state: word(row, "state")?,
        reason: maybe_word(row, "reason")?,
        attempt: count(row, "attempt")?,
        crashes: count(row, "crashes")?,
        fence: get(row, "fence")?,
        claim_id: get(row, "claim_id")?,
        owner: get(row, "owner")?,
        exclusive: get(row, "exclusive")?,
        delivery: word(row, "delivery")?,
        due_at: get(row, "due_at")?,
        expires_at: get(row, "expires_at")?,
        lease_until: get(row, "lease_until")?,
        cancel_requested: get(row, "cancel_requested")?,
        created_at: get(row, "created_at")?,
        started_at: get(row, "started_at")?,
        finished_at: get(row, "finished_at")?,
        error: get(row, "error")?,
        output: get(row, "output")?,
    })
}

pub(super) fn attempt_row(row: &PgRow) -> Result<AttemptRow, Failure> {
    Ok(AttemptRow {
        attempt: count(row, "attempt")?,
        fence: get(row, "fence")?,
        owner: get(row, "owner")?,
        started_at: get(row, "started_at")?,
        ended_at: get(row, "ended_at")?,
        reason: word(row, "reason")?,
        error: get(row, "error")?,
        output: get(row, "output")?,
    })
}

pub(super) fn job_row(row: &PgRow) -> Result<JobRow, Failure> {
    Ok(JobRow {
        name: get(row, "name")?,
        known_since: get(row, "known_since")?,
        reconciled_until: get(row, "reconciled_until")?,
        spec_hash: get(row, "spec_hash")?,
        paused_at: get(row, "paused_at")?,
        paused_by: get(row, "paused_by")?,
        paused_note: get(row, "paused_note")?,
        pruned_before: get(row, "pruned_before")?,
    })
}

/// A duration in milliseconds, at most a hundred years. The server's calendar could not hold far longer ones.
pub(super) fn millis(span: Duration) -> i64 {
    const CENTURY: i64 = 100 * 366 * 24 * 3600 * 1000;
    i64::try_from(span.as_millis()).map_or(CENTURY, |millis| millis.min(CENTURY))
}

/// A number for a column. One that does not fit becomes the largest that does.
pub(super) fn int(number: u32) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// Text of any origin, with NUL characters replaced. The server refuses NUL, and a run must be settled whatever
/// its command has printed.
pub(super) fn text(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{FFFD}")) } else { Cow::Borrowed(text) }
}

/// The nominal instant in whole milliseconds, as both databases keep it. It is always rounded in the same way,
/// because it is part of the firing's identity.
pub(super) fn nominal(at: DateTime<Utc>) -> DateTime<Utc> {
    at.trunc_subsecs(3)
}
