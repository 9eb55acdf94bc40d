//! Runs whose owner may be gone.

use sqlx::Row;

use super::SqliteLedger;
use super::cells;
use super::fault::Fault;
use crate::firing::{Delivery, Word};
use crate::ledger::{Answer, Running, Settlement, Suspect, Sweeping, Swept};
use crate::rules::LostRun;

impl Sweeping for SqliteLedger {
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
                // One transaction for each, so that heartbeats can be written in between.
                swept.extend(self.answer("sweep a lost run", self.sweep_one(suspect)).await?);
            }
            Ok(swept)
        })
    }
}

impl SqliteLedger {
    /// Ends one suspect, if its lease has not changed since it was seen.
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
        let Word::Known(delivery) = cells::word::<Delivery>(&row, "delivery")? else {
            // Only a newer program knows this word, so it must end the run.
            write.roll_back().await?;
            return Ok(None);
        };
        let lost = LostRun {
            delivery,
            crashes: cells::small(&row, "crashes")?,
            max_crashes: suspect.max_crashes,
            crashed: true,
            cancel_requested: cells::flag(&row, "cancel_requested")?,
        };
        let ending = lost.fate().of_vanished_owner(suspect.expires_in);
        let settlement = Settlement { run: suspect.run, ending, crashed: true, error: None, output: None };
        let ended = self.end(&mut write, &settlement).await?;
        write.commit().await?;
        let (state, reason) = ending.words();
        Ok(if ended {
            Some(Swept { run: suspect.run, job: row.try_get("job")?, state, reason })
        } else {
            None
        })
    }
}
