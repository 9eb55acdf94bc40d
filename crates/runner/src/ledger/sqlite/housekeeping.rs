//! Which jobs there are, and how far they are pruned.

use std::time::Duration;

use super::SqliteLedger;
use super::cells::{self, millis};
use super::fault::Fault;
use crate::ledger::{Answer, Housekeeping, JobRegistration, Server};

impl Housekeeping for SqliteLedger {
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

    /// A file has no standby.
    fn adopt(&self) -> Answer<'_, Option<Server>> {
        Box::pin(async { Ok(None) })
    }
}

impl SqliteLedger {
    /// Raises the watermarks and removes one batch, in one transaction.
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
