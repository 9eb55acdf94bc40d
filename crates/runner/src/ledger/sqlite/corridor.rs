//! What the corridor of a firing writes.

use std::time::Duration;

use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::cells::{self, millis};
use super::fault::Fault;
use super::{SqliteLedger, SqliteStatement};
use crate::firing::{Firing, Reason, State};
use crate::ledger::{
    Answer, Claim, ClaimRequest, Ending, Entry, Heartbeat, Ledger, Run, Settled, Settlement, Skip, Skipped,
    Won,
};
use crate::rules::{CLOCK_SKEW, why_not_claimed, why_not_skipped};

/// How often a claim is tried again because the reason against it was gone.
const CLAIM_TRIES: u32 = 5;

impl Ledger for SqliteLedger {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> Answer<'a, Claim> {
        self.answer("claim a firing", async move {
            for _ in 0..CLAIM_TRIES {
                let mut write = self.writer.begin().await?;
                if let Some(row) = self.take(&mut write, request).await? {
                    write.commit().await?;
                    return Ok(Claim::Won(cells::won(&row)?));
                }
                let view = self.look(&mut write, &request.firing).await?;
                write.roll_back().await?;
                if let Some(no) = why_not_claimed(&view, request) {
                    return Ok(no);
                }
            }
            Err(Fault::Contended)
        })
    }

    fn confirm<'a>(&'a self, request: &'a ClaimRequest) -> Answer<'a, Option<Won>> {
        self.answer("confirm a claim", async move {
            // Under the write lock: a claim whose call was dropped may be committing at this moment. When we have
            // the lock, it has either committed or never will.
            let mut write = self.writer.begin().await?;
            let row = self
                .about(include_str!("sql/confirm.sql"), &request.firing)
                .bind(request.claim_id.to_string())
                .fetch_optional(&mut *write)
                .await?;
            write.roll_back().await?;
            row.as_ref().map(cells::won).transpose()
        })
    }

    fn heartbeat(&self, run: Run, lease: Duration) -> Answer<'_, Heartbeat> {
        self.answer("keep a lease", async move {
            let mut write = self.writer.begin().await?;
            let row = self
                .of_run(include_str!("sql/heartbeat.sql"), run)
                .bind(millis(lease))
                .fetch_optional(&mut *write)
                .await?;
            write.commit().await?;
            match row {
                Some(row) => {
                    Ok(Heartbeat::Alive { cancel_requested: cells::flag(&row, "cancel_requested")? })
                }
                None => Ok(Heartbeat::Lost),
            }
        })
    }

    fn settle<'a>(&'a self, settlement: &'a Settlement) -> Answer<'a, Settled> {
        self.answer("settle a run", async move {
            let mut write = self.writer.begin().await?;
            let recorded =
                self.end(&mut write, settlement).await? || self.has_ended_so(&mut write, settlement).await?;
            write.commit().await?;
            Ok(if recorded { Settled::Recorded } else { Settled::Fenced })
        })
    }

    fn skip<'a>(&'a self, skip: &'a Skip) -> Answer<'a, Skipped> {
        self.answer("record a skip", async move {
            let mut write = self.writer.begin().await?;
            let inserted = self
                .about(include_str!("sql/skip.sql"), &skip.firing)
                .bind(skip.firing.origin.as_str())
                .bind(skip.reason.as_str())
                .bind(&skip.detail)
                .bind(skip.only_while_running)
                .execute(&mut *write)
                .await?
                .rows_affected();
            if inserted == 1 {
                write.commit().await?;
                return Ok(Skipped::Recorded);
            }
            let view = self.look(&mut write, &skip.firing).await?;
            write.roll_back().await?;
            // The view is read in the same transaction, so the reason cannot be gone.
            why_not_skipped(&view, skip).ok_or(Fault::Contended)
        })
    }
}

impl SqliteLedger {
    /// Writes the row of a claim, if nothing stands in the way.
    async fn take(
        &self,
        conn: &mut SqliteConnection,
        request: &ClaimRequest,
    ) -> Result<Option<SqliteRow>, Fault> {
        let minted = sqlx::query(include_str!("sql/mint_fence.sql")).fetch_one(&mut *conn).await?;
        let fence = cells::integer(&minted, "minted")?;
        let claim_id = request.claim_id.to_string();
        let firing = &request.firing;
        let statement = match request.entry {
            Entry::Fresh { not_after } => self
                .about(include_str!("sql/claim.sql"), firing)
                .bind(firing.origin.as_str())
                .bind(fence)
                .bind(claim_id)
                .bind(request.owner.as_str())
                .bind(request.exclusive)
                .bind(request.delivery.as_str())
                .bind(millis(request.lease))
                .bind(millis(not_after))
                .bind(millis(CLOCK_SKEW)),
            Entry::Queued(id) => sqlx::query(include_str!("sql/claim_queued.sql"))
                .bind(&*self.namespace)
                .bind(firing.job.as_str())
                .bind(id.0)
                .bind(fence)
                .bind(claim_id)
                .bind(request.owner.as_str())
                .bind(request.exclusive)
                .bind(request.delivery.as_str())
                .bind(millis(request.lease)),
        };
        Ok(statement.fetch_optional(conn).await?)
    }

    /// Ends a run; false if it is not running (any more) under this fence.
    pub(super) async fn end(
        &self,
        conn: &mut SqliteConnection,
        settlement: &Settlement,
    ) -> Result<bool, Fault> {
        let Settlement { run, ending, crashed, error, output } = settlement;
        let terminal = |state: State, reason: Option<Reason>| {
            self.of_run(include_str!("sql/settle.sql"), *run)
                .bind(state.as_str())
                .bind(reason.map(|reason| reason.as_str()))
                .bind(*crashed)
                .bind(error)
                .bind(output)
        };
        let statement = match ending {
            Ending::Terminal { state, reason } => terminal(*state, *reason),
            Ending::Requeue { reason, due_in, expires_in } => {
                let superseded = self
                    .of_run(include_str!("sql/supersede.sql"), *run)
                    .bind(reason.as_str())
                    .bind(error)
                    .bind(output)
                    .execute(&mut *conn)
                    .await?
                    .rows_affected();
                if superseded == 1 {
                    self.of_run(include_str!("sql/requeue.sql"), *run)
                        .bind(reason.as_str())
                        .bind(*crashed)
                        .bind(error)
                        .bind(output)
                        .bind(millis(*due_in))
                        .bind(millis(*expires_in))
                } else {
                    // Its cancellation was requested, so it must not wait for another attempt. Or the run is not
                    // ours any more; then this statement changes no row either.
                    terminal(State::Cancelled, None)
                }
            }
        };
        Ok(statement.execute(conn).await?.rows_affected() == 1)
    }

    /// Whether an earlier try of this settle, whose answer was lost, has taken effect.
    async fn has_ended_so(
        &self,
        conn: &mut SqliteConnection,
        settlement: &Settlement,
    ) -> Result<bool, Fault> {
        let statement = match &settlement.ending {
            Ending::Terminal { state, reason } => self
                .of_run(include_str!("sql/settle_recorded.sql"), settlement.run)
                .bind(state.as_str())
                .bind(reason.map(|reason| reason.as_str())),
            Ending::Requeue { reason, .. } => {
                self.of_run(include_str!("sql/requeue_recorded.sql"), settlement.run).bind(reason.as_str())
            }
        };
        Ok(statement.fetch_optional(conn).await?.is_some())
    }

    /// A statement whose first five parameters name a firing.
    pub(super) fn about<'q>(&'q self, sql: &'static str, firing: &'q Firing) -> SqliteStatement<'q> {
        sqlx::query(sql)
            .bind(&*self.namespace)
            .bind(firing.job.as_str())
            .bind(firing.scheduled_at.timestamp_millis())
            .bind(firing.shard)
            .bind(&firing.trigger_key)
    }

    /// A statement whose first three parameters name a run.
    pub(super) fn of_run<'q>(&'q self, sql: &'static str, run: Run) -> SqliteStatement<'q> {
        sqlx::query(sql).bind(&*self.namespace).bind(run.id.0).bind(run.fence.0)
    }
}
