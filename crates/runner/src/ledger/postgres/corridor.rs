//! What the corridor of a firing writes: the claim, the heartbeats, the end.
//!
//! The statements decide. If one takes no effect, a second statement reads the reason. The reason may be gone by
//! then. In that case nothing forbids the first statement any more, and it is tried again.

use std::time::Duration;

use sqlx::postgres::PgRow;

use super::PostgresLedger;
use super::connection::{Session, Statement};
use super::failure::{Failure, is_refused_by};
use super::rows::{self, get, int, millis, nominal, text};
use crate::ledger::{
    Answer, Claim, ClaimRequest, Ending, Entry, FiringId, Heartbeat, Ledger, Run, Settled, Settlement, Skip,
    Skipped, Won,
};
use crate::rules::{CLOCK_SKEW, why_not_claimed, why_not_skipped};

/// How often a statement is tried again because the reason against it was gone.
pub(super) const TRIES: u32 = 5;

impl Ledger for PostgresLedger {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> Answer<'a, Claim> {
        self.corridor.ask("claim a firing", move || async move {
            let mut session = self.corridor.session().await?;
            for _ in 0..TRIES {
                if let Some(row) = self.take(&mut session, request).await? {
                    return Ok(Claim::Won(rows::won(&row)?));
                }
                let view = self.look(&mut session, &request.firing).await?;
                if let Some(no) = why_not_claimed(&view, request) {
                    return Ok(no);
                }
            }
            Err(Failure::Contended)
        })
    }

    fn confirm<'a>(&'a self, request: &'a ClaimRequest) -> Answer<'a, Option<Won>> {
        self.corridor.ask("confirm a claim", move || async move {
            let confirm = self.of(include_str!("sql/confirm.sql"), &request.firing).bind(request.claim_id);
            let row = self.corridor.session().await?.row(confirm).await?;
            row.map(|row| rows::won(&row)).transpose()
        })
    }

    fn heartbeat(&self, run: Run, lease: Duration) -> Answer<'_, Heartbeat> {
        self.pulse.ask("keep a lease", move || async move {
            let heartbeat = self.of_run(include_str!("sql/heartbeat.sql"), run).bind(millis(lease));
            match self.pulse.session().await?.row(heartbeat).await? {
                Some(row) => Ok(Heartbeat::Alive { cancel_requested: get(&row, "cancel_requested")? }),
                None => Ok(Heartbeat::Lost),
            }
        })
    }

    fn settle<'a>(&'a self, settlement: &'a Settlement) -> Answer<'a, Settled> {
        self.corridor.ask("settle a run", move || async move {
            let mut session = self.corridor.session().await?;
            if session.row(self.end(settlement)).await?.is_some() {
                return Ok(Settled::Recorded);
            }
            let (state, reason) = settlement.ending.words();
            let found = self
                .of_run(include_str!("sql/settle_found.sql"), settlement.run)
                .bind(state.as_str())
                .bind(reason.map(|reason| reason.as_str()));
            let row = session.row(found).await?;
            let recorded = row.map(|row| get::<bool>(&row, "recorded")).transpose()?.unwrap_or(false);
            Ok(if recorded { Settled::Recorded } else { Settled::Fenced })
        })
    }

    fn skip<'a>(&'a self, skip: &'a Skip) -> Answer<'a, Skipped> {
        self.corridor.ask("record a skip", move || async move {
            let mut session = self.corridor.session().await?;
            for _ in 0..TRIES {
                let insert = self
                    .of(include_str!("sql/skip.sql"), &skip.firing)
                    .bind(skip.firing.origin.as_str())
                    .bind(skip.reason.as_str())
                    .bind(skip.detail.as_deref().map(text))
                    .bind(skip.only_while_running);
                if session.row(insert).await?.is_some() {
                    return Ok(Skipped::Recorded);
                }
                let view = self.look(&mut session, &skip.firing).await?;
                if let Some(no) = why_not_skipped(&view, skip) {
                    return Ok(no);
                }
            }
            Err(Failure::Contended)
        })
    }
}

impl PostgresLedger {
    async fn take(
        &self,
        session: &mut Session<'_>,
        request: &ClaimRequest,
    ) -> Result<Option<PgRow>, Failure> {
        match request.entry {
            Entry::Fresh { not_after } => session.row(self.fresh(request, not_after)).await,
            Entry::Queued(id) => match session.row(self.queued(request, id)).await {
                // Another run of the job is running. The row stays queued, which is not an error.
                Err(Failure::Sql(error)) if is_refused_by(&error, "runner_firings_running") => Ok(None),
                answer => answer,
            },
        }
    }

    fn fresh<'q>(&'q self, request: &'q ClaimRequest, not_after: Duration) -> Statement<'q> {
        let firing = &request.firing;
        sqlx::query(include_str!("sql/claim_fresh.sql"))
            .bind(&*self.namespace)
            .bind(firing.job.as_str())
            .bind(nominal(firing.scheduled_at))
            .bind(int(firing.shard))
            .bind(&firing.trigger_key)
            .bind(firing.origin.as_str())
            .bind(request.claim_id)
            .bind(request.owner.as_str())
            .bind(request.exclusive)
            .bind(request.delivery.as_str())
            .bind(millis(request.lease))
            .bind(millis(not_after))
            .bind(millis(CLOCK_SKEW))
    }

    fn queued<'q>(&'q self, request: &'q ClaimRequest, id: FiringId) -> Statement<'q> {
        sqlx::query(include_str!("sql/claim_queued.sql"))
            .bind(&*self.namespace)
            .bind(request.firing.job.as_str())
            .bind(id.0)
            .bind(request.claim_id)
            .bind(request.owner.as_str())
            .bind(request.exclusive)
            .bind(request.delivery.as_str())
            .bind(millis(request.lease))
    }

    /// The statement that ends a run.
    fn end<'q>(&'q self, settlement: &'q Settlement) -> Statement<'q> {
        let Settlement { run, ending, crashed, error, output } = settlement;
        let (error, output) = (error.as_deref().map(text), output.as_deref().map(text));
        match *ending {
            Ending::Terminal { state, reason } => self
                .of_run(include_str!("sql/settle_terminal.sql"), *run)
                .bind(state.as_str())
                .bind(reason.map(|reason| reason.as_str()))
                .bind(error)
                .bind(output)
                .bind(*crashed),
            Ending::Requeue { reason, due_in, expires_in } => self
                .of_run(include_str!("sql/settle_requeue.sql"), *run)
                .bind(reason.as_str())
                .bind(error)
                .bind(output)
                .bind(*crashed)
                .bind(millis(due_in))
                .bind(millis(expires_in)),
        }
    }

    /// A statement whose first three arguments name a run.
    pub(super) fn of_run(&self, sql: &'static str, run: Run) -> Statement<'_> {
        sqlx::query(sql).bind(&*self.namespace).bind(run.id.0).bind(run.fence.0)
    }
}
