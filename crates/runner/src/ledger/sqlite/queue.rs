//! Firings that wait.

use super::SqliteLedger;
use super::cells::{self, millis};
use super::fault::Fault;
use crate::ledger::{Answer, Due, Enqueue, Enqueued, Expired, FiringId, Queue};
use crate::rules::why_not_enqueued;

impl Queue for SqliteLedger {
    fn enqueue<'a>(&'a self, enqueue: &'a Enqueue) -> Answer<'a, Enqueued> {
        self.answer("queue a firing", async move {
            let mut write = self.writer.begin().await?;
            let inserted = self
                .about(include_str!("sql/enqueue.sql"), &enqueue.firing)
                .bind(enqueue.firing.origin.as_str())
                .bind(enqueue.reason.as_str())
                .bind(enqueue.exclusive)
                .bind(enqueue.delivery.as_str())
                .bind(millis(enqueue.due_in))
                .bind(millis(enqueue.expires_in))
                .fetch_optional(&mut *write)
                .await?;
            if let Some(row) = inserted {
                write.commit().await?;
                return Ok(Enqueued::Queued(FiringId(cells::integer(&row, "id")?)));
            }
            let view = self.look(&mut write, &enqueue.firing).await?;
            write.roll_back().await?;
            // The view is read in the same transaction, so the reason cannot be gone.
            why_not_enqueued(&view, enqueue).ok_or(Fault::Contended)
        })
    }

    fn due<'a>(&'a self, jobs: &'a [String], limit: u32) -> Answer<'a, Vec<Due>> {
        self.answer("look for due firings", async move {
            let jobs = serde_json::Value::from(jobs).to_string();
            let statement = sqlx::query(include_str!("sql/due.sql"));
            let due = self.rows(statement.bind(&*self.namespace).bind(jobs).bind(limit), cells::due).await?;
            Ok(due.into_iter().flatten().collect())
        })
    }

    fn expire(&self, limit: u32) -> Answer<'_, Vec<Expired>> {
        self.answer("end firings that waited too long", async move {
            let mut write = self.writer.begin().await?;
            let rows = sqlx::query(include_str!("sql/expire.sql"))
                .bind(&*self.namespace)
                .bind(limit)
                .fetch_all(&mut *write)
                .await?;
            write.commit().await?;
            rows.iter().map(cells::expired).collect()
        })
    }
}
