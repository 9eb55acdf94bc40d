//! Firings that wait.

use super::PostgresLedger;
use super::claim::own_row;
use super::failure::Failure;
use super::rows::{self, count, get, millis, word};
use crate::ledger::{Due, Enqueue, Enqueued, Expired, FiringId};

/// How often an enqueue is tried again because what forbade it went away.
const TRIES: u32 = 5;

impl PostgresLedger {
    pub(super) async fn put_into_queue(&self, enqueue: &Enqueue) -> Result<Enqueued, Failure> {
        let mut session = self.upkeep.session().await?;
        for _ in 0..TRIES {
            let insert = self
                .of(include_str!("sql/enqueue.sql"), &enqueue.firing)
                .bind(enqueue.firing.origin.as_str())
                .bind(&enqueue.reason)
                .bind(enqueue.exclusive)
                .bind(enqueue.delivery.as_str())
                .bind(millis(enqueue.due_in))
                .bind(millis(enqueue.expires_in));
            if let Some(row) = session.row(insert).await? {
                return Ok(Enqueued::Queued(rows::id(&row)?));
            }
            let view = self.look(&mut session, &enqueue.firing).await?;
            if let Some(found) = own_row(&view)? {
                return Ok(Enqueued::AlreadyThere(found));
            }
            if !get::<bool>(&view, "registered")? || get(&view, "pruned")? || get(&view, "paused")? {
                return Ok(Enqueued::Refused);
            }
            if enqueue.reason == "overlap" && get(&view, "one_waits")? {
                return Ok(Enqueued::WaitingAlready);
            }
        }
        Err(Failure::Restless)
    }

    pub(super) async fn list_due(&self, jobs: &[String], limit: u32) -> Result<Vec<Due>, Failure> {
        let due =
            sqlx::query(include_str!("sql/due.sql")).bind(&*self.namespace).bind(jobs).bind(i64::from(limit));
        let list = self.upkeep.session().await?.rows(due).await?;
        list.iter()
            .map(|row| {
                Ok(Due {
                    id: rows::id(row)?,
                    firing: rows::firing(row)?,
                    attempt: count(row, "attempt")?,
                    reason: get(row, "reason")?,
                })
            })
            .collect()
    }

    pub(super) async fn end_expired(&self, limit: u32) -> Result<Vec<Expired>, Failure> {
        let expire =
            sqlx::query(include_str!("sql/expire.sql")).bind(&*self.namespace).bind(i64::from(limit));
        let list = self.upkeep.session().await?.rows(expire).await?;
        list.iter()
            .map(|row| Ok(Expired { id: rows::id(row)?, job: get(row, "job")?, state: word(row, "state")? }))
            .collect()
    }

    pub(super) async fn request_cancel(&self, id: FiringId) -> Result<bool, Failure> {
        let cancel = sqlx::query(include_str!("sql/cancel.sql")).bind(&*self.namespace).bind(id.0);
        Ok(self.upkeep.session().await?.row(cancel).await?.is_some())
    }
}
