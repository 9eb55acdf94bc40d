//! What keeps the ledger in order.

use std::time::Duration;

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::cells::{self, millis};
use super::fault::Fault;
use super::{SqliteLedger, Statement};
use crate::firing::{Delivery, State};
use crate::ledger::{
    Answer, Decision, Due, Ending, Enqueue, Enqueued, Expired, FiringId, Horizon, JobRegistration, Question,
    Running, Server, Settlement, Suspect, Swept, Upkeep,
};

impl Upkeep for SqliteLedger {
    fn register<'a>(&'a self, jobs: &'a [JobRegistration]) -> Answer<'a, ()> {
        self.answer("register the jobs", async move {
            let mut write = self.writer.begin().await?;
            for job in jobs {
                sqlx::query(include_str!("sql/register.sql"))
                    .bind(&*self.namespace)
                    .bind(&job.name)
                    .bind(&job.spec_hash)
                    .execute(&mut *write)
                    .await?;
            }
            write.commit().await
        })
    }

    fn enqueue<'a>(&'a self, enqueue: &'a Enqueue) -> Answer<'a, Enqueued> {
        self.answer("queue a firing", async move {
            let mut write = self.writer.begin().await?;
            let inserted = self
                .about(include_str!("sql/enqueue.sql"), &enqueue.firing)
                .bind(enqueue.firing.origin.as_str())
                .bind(&enqueue.reason)
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
            let row = self
                .about(include_str!("sql/enqueue_refused.sql"), &enqueue.firing)
                .fetch_one(&mut *write)
                .await?;
            write.roll_back().await?;
            match cells::found(&row)? {
                Some(found) => Ok(Enqueued::AlreadyThere(found)),
                // Within one transaction only the row that waits for the overlap is left to blame.
                None if cells::flag(&row, "taken")? => Ok(Enqueued::WaitingAlready),
                None => Ok(Enqueued::Refused),
            }
        })
    }

    fn due<'a>(&'a self, jobs: &'a [String], limit: u32) -> Answer<'a, Vec<Due>> {
        self.answer("look for due firings", async move {
            let jobs = serde_json::Value::from(jobs).to_string();
            let statement = sqlx::query(include_str!("sql/due.sql"));
            self.rows(statement.bind(&*self.namespace).bind(jobs).bind(limit), cells::due).await
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

    fn running(&self) -> Answer<'_, Vec<Running>> {
        self.answer("look at the runs", async move {
            let statement = sqlx::query(include_str!("sql/running.sql"));
            self.rows(statement.bind(&*self.namespace), cells::running).await
        })
    }

    fn sweep<'a>(&'a self, suspects: &'a [Suspect]) -> Answer<'a, Vec<Swept>> {
        Box::pin(async move {
            let mut swept = Vec::new();
            for suspect in suspects {
                // A transaction for each, so that heartbeats get their turn in between.
                swept.extend(self.answer("sweep a lost run", self.sweep_one(suspect)).await?);
            }
            Ok(swept)
        })
    }

    fn horizons<'a>(&'a self, questions: &'a [Question]) -> Answer<'a, Vec<Horizon>> {
        self.answer("look for gaps", self.read_horizons(questions))
    }

    fn decide<'a>(&'a self, decision: &'a Decision) -> Answer<'a, bool> {
        self.answer("decide about gaps", self.write_decision(decision))
    }

    fn prune(&self, retention: Duration, batch: u32) -> Answer<'_, u64> {
        Box::pin(async move {
            let mut removed = 0;
            loop {
                let some = self.answer("remove old firings", self.prune_some(retention, batch)).await?;
                removed += some;
                if some < u64::from(batch.max(1)) {
                    return Ok(removed);
                }
            }
        })
    }

    fn pause<'a>(&'a self, job: &'a str, by: &'a str, note: &'a str) -> Answer<'a, bool> {
        self.answer("pause a job", async move {
            let statement = sqlx::query(include_str!("sql/pause.sql"));
            self.touches_one(statement.bind(&*self.namespace).bind(job).bind(by).bind(note)).await
        })
    }

    fn resume<'a>(&'a self, job: &'a str) -> Answer<'a, bool> {
        self.answer("resume a job", async move {
            let statement = sqlx::query(include_str!("sql/resume.sql"));
            self.touches_one(statement.bind(&*self.namespace).bind(job)).await
        })
    }

    /// A file has no standby.
    fn adopt(&self) -> Answer<'_, Option<Server>> {
        Box::pin(async { Ok(None) })
    }

    fn cancel(&self, id: FiringId) -> Answer<'_, bool> {
        self.answer("cancel a firing", async move {
            let statement = sqlx::query(include_str!("sql/cancel.sql"));
            self.touches_one(statement.bind(&*self.namespace).bind(id.0)).await
        })
    }
}

impl SqliteLedger {
    /// Runs a statement that changes one row or none, and says which.
    async fn touches_one(&self, statement: Statement<'_>) -> Result<bool, Fault> {
        let mut write = self.writer.begin().await?;
        let touched = statement.execute(&mut *write).await?.rows_affected();
        write.commit().await?;
        Ok(touched == 1)
    }

    /// Ends one suspect, if it is still as it was seen.
    async fn sweep_one(&self, suspect: &Suspect) -> Result<Option<Swept>, Fault> {
        let mut write = self.writer.begin().await?;
        let row = self
            .of_run(include_str!("sql/sweep_look.sql"), suspect.run)
            .bind(suspect.lease_until.timestamp_millis())
            .fetch_optional(&mut *write)
            .await?;
        let Some(row) = row else {
            write.roll_back().await?;
            return Ok(None);
        };
        let ending = after_loss(&row, suspect)?;
        let settlement = Settlement { run: suspect.run, ending, crashed: true, error: None, output: None };
        let ended = self.end(&mut write, &settlement).await?;
        write.commit().await?;
        let (state, reason) = match settlement.ending {
            Ending::Terminal { state, reason } => (state, reason),
            Ending::Requeue { reason, .. } => (State::Queued, Some(reason)),
        };
        Ok(if ended {
            Some(Swept { run: suspect.run, job: row.try_get("job")?, state, reason })
        } else {
            None
        })
    }

    /// Raises the watermarks and removes one batch, as one.
    async fn prune_some(&self, retention: Duration, batch: u32) -> Result<u64, Fault> {
        let mut write = self.writer.begin().await?;
        let now = sqlx::query(include_str!("sql/now.sql")).fetch_one(&mut *write).await?;
        let cutoff = cells::integer(&now, "now")? - millis(retention);
        sqlx::query(include_str!("sql/prune_watermark.sql"))
            .bind(&*self.namespace)
            .bind(cutoff)
            .execute(&mut *write)
            .await?;
        let removed = sqlx::query(include_str!("sql/prune.sql"))
            .bind(&*self.namespace)
            .bind(cutoff)
            .bind(batch.max(1))
            .execute(&mut *write)
            .await?
            .rows_affected();
        write.commit().await?;
        Ok(removed)
    }
}

/// What becomes of a firing whose owner vanished.
fn after_loss(row: &SqliteRow, suspect: &Suspect) -> Result<Ending, Fault> {
    let terminal = |state, reason: Option<&str>| Ending::Terminal { state, reason: reason.map(Into::into) };
    Ok(if cells::word::<Delivery>(row, "delivery")? == Delivery::AtMostOnce {
        terminal(State::Lost, Some("owner_lost"))
    } else if cells::integer(row, "crashes")? + 1 > i64::from(suspect.max_crashes) {
        terminal(State::Failed, Some("crash_loop"))
    } else if cells::flag(row, "cancel_requested")? {
        terminal(State::Cancelled, None)
    } else {
        Ending::Requeue {
            reason: "owner_lost".into(),
            due_in: Duration::ZERO,
            expires_in: suspect.expires_in,
        }
    })
}
