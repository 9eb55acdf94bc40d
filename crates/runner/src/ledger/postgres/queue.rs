//! Firings that wait.

use sqlx::postgres::PgRow;

use super::PostgresLedger;
use super::corridor::TRIES;
use super::failure::Failure;
use super::rows::{self, count, get, maybe_word, millis, our_word};
use crate::ledger::{Answer, Due, Enqueue, Enqueued, Expired, Queue};
use crate::rules::why_not_enqueued;

impl Queue for PostgresLedger {
    fn enqueue<'a>(&'a self, enqueue: &'a Enqueue) -> Answer<'a, Enqueued> {
        self.upkeep.ask("queue a firing", move || async move {
            let mut session = self.upkeep.session().await?;
            for _ in 0..TRIES {
                let insert = self
                    .of(include_str!("sql/enqueue.sql"), &enqueue.firing)
                    .bind(enqueue.firing.origin.as_str())
                    .bind(enqueue.reason.as_str())
                    .bind(enqueue.exclusive)
                    .bind(enqueue.delivery.as_str())
                    .bind(millis(enqueue.due_in))
                    .bind(millis(enqueue.expires_in));
                if let Some(row) = session.row(insert).await? {
                    return Ok(Enqueued::Queued(rows::id(&row)?));
                }
                let view = self.look(&mut session, &enqueue.firing).await?;
                if let Some(no) = why_not_enqueued(&view, enqueue) {
                    return Ok(no);
                }
            }
            Err(Failure::Contended)
        })
    }

    fn due<'a>(&'a self, jobs: &'a [String], limit: u32) -> Answer<'a, Vec<Due>> {
        self.upkeep.ask("read the queue", move || async move {
            let due = sqlx::query(include_str!("sql/due.sql"))
                .bind(&*self.namespace)
                .bind(jobs)
                .bind(i64::from(limit));
            let list = self.upkeep.session().await?.rows(due).await?;
            list.iter().filter_map(|row| due_row(row).transpose()).collect()
        })
    }

    fn expire(&self, limit: u32) -> Answer<'_, Vec<Expired>> {
        self.upkeep.ask("end what waited too long", move || async move {
            let expire =
                sqlx::query(include_str!("sql/expire.sql")).bind(&*self.namespace).bind(i64::from(limit));
            let list = self.upkeep.session().await?.rows(expire).await?;
            list.iter()
                .map(|row| {
                    Ok(Expired {
                        id: rows::id(row)?,
                        job: get(row, "job")?,
                        state: our_word(row, "state")?,
                        reason: our_word(row, "reason")?,
                    })
                })
                .collect()
        })
    }
}

/// `None` for a firing that only a newer program can run.
fn due_row(row: &PgRow) -> Result<Option<Due>, Failure> {
    let Some(firing) = rows::firing(row)? else { return Ok(None) };
    let (id, attempt) = (rows::id(row)?, count(row, "attempt")?);
    Ok(Some(Due { id, firing, attempt, reason: maybe_word(row, "reason")? }))
}
