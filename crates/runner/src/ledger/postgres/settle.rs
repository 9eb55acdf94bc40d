//! Keeping a run and ending it, under its fence.

use std::time::Duration;

use super::PostgresLedger;
use super::claim::own_row;
use super::failure::Failure;
use super::rows::{get, millis, text};
use crate::ledger::{Ending, Heartbeat, Run, Settled, Settlement, Skip, Skipped};

/// How often a skip is tried again because what forbade it went away.
const TRIES: u32 = 5;

impl PostgresLedger {
    pub(super) async fn move_lease(&self, run: Run, lease: Duration) -> Result<Heartbeat, Failure> {
        let heartbeat = sqlx::query(include_str!("sql/heartbeat.sql"))
            .bind(&*self.namespace)
            .bind(run.id.0)
            .bind(run.fence.0)
            .bind(millis(lease));
        match self.pulse.session().await?.row(heartbeat).await? {
            Some(row) => Ok(Heartbeat::Alive { cancel_requested: get(&row, "cancel_requested")? }),
            None => Ok(Heartbeat::Lost),
        }
    }

    pub(super) async fn end_run(&self, settlement: &Settlement) -> Result<Settled, Failure> {
        let run = settlement.run;
        let (sql, word, reason) = match &settlement.ending {
            Ending::Terminal { state, reason } => {
                (include_str!("sql/settle_terminal.sql"), state.as_str(), reason.as_deref())
            }
            Ending::Requeue { reason, .. } => {
                (include_str!("sql/settle_requeue.sql"), "queued", Some(reason.as_str()))
            }
        };
        let mut settle = sqlx::query(sql).bind(&*self.namespace).bind(run.id.0).bind(run.fence.0);
        if let Ending::Terminal { .. } = settlement.ending {
            settle = settle.bind(word);
        }
        settle = settle
            .bind(reason)
            .bind(settlement.error.as_deref().map(text))
            .bind(settlement.output.as_deref().map(text))
            .bind(settlement.crashed);
        if let Ending::Requeue { due_in, expires_in, .. } = settlement.ending {
            settle = settle.bind(millis(due_in)).bind(millis(expires_in));
        }
        let mut session = self.corridor.session().await?;
        if session.row(settle).await?.is_some() {
            return Ok(Settled::Recorded);
        }
        let found = sqlx::query(include_str!("sql/settle_found.sql"))
            .bind(&*self.namespace)
            .bind(run.id.0)
            .bind(run.fence.0)
            .bind(word)
            .bind(reason);
        let row = session.row(found).await?;
        let recorded = row.map(|row| get::<bool>(&row, "recorded")).transpose()?.unwrap_or(false);
        Ok(if recorded { Settled::Recorded } else { Settled::Fenced })
    }

    pub(super) async fn write_skip(&self, skip: &Skip) -> Result<Skipped, Failure> {
        let mut session = self.corridor.session().await?;
        for _ in 0..TRIES {
            let insert = self
                .of(include_str!("sql/skip.sql"), &skip.firing)
                .bind(skip.firing.origin.as_str())
                .bind(&skip.reason)
                .bind(skip.detail.as_deref().map(text))
                .bind(skip.only_while_running);
            if session.row(insert).await?.is_some() {
                return Ok(Skipped::Recorded);
            }
            let view = self.look(&mut session, &skip.firing).await?;
            if let Some(found) = own_row(&view)? {
                return Ok(Skipped::AlreadyThere(found.state));
            }
            if !get::<bool>(&view, "registered")? || get(&view, "pruned")? {
                return Ok(Skipped::Refused);
            }
            if skip.only_while_running && get::<Option<i64>>(&view, "other_id")?.is_none() {
                return Ok(Skipped::NothingRunning);
            }
        }
        Err(Failure::Restless)
    }
}
