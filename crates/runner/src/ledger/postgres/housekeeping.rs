//! Which jobs there are, how far they are pruned, and which server keeps them.

use std::time::Duration;

use super::PostgresLedger;
use super::failure::Failure;
use super::reader::server;
use super::rows::{get, millis};
use crate::ledger::{Answer, Housekeeping, JobRegistration, Server};

impl Housekeeping for PostgresLedger {
    fn register<'a>(&'a self, jobs: &'a [JobRegistration]) -> Answer<'a, ()> {
        self.upkeep.ask("register the jobs", move || async move {
            let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
            let hashes: Vec<&str> = jobs.iter().map(|job| job.spec_hash.as_str()).collect();
            let register =
                sqlx::query(include_str!("sql/register.sql")).bind(&*self.namespace).bind(names).bind(hashes);
            self.upkeep.session().await?.row(register).await?;
            Ok(())
        })
    }

    fn prune(&self, retention: Duration, batch: u32) -> Answer<'_, u64> {
        Box::pin(async move {
            const DOING: &str = "prune";
            let mut total = 0;
            for job in self.upkeep.ask(DOING, || self.jobs_to_prune(retention)).await? {
                loop {
                    let removed = self.upkeep.ask(DOING, || self.prune_batch(&job, retention, batch)).await?;
                    total += removed;
                    if removed < u64::from(batch) || batch == 0 {
                        break;
                    }
                }
            }
            Ok(total)
        })
    }

    fn adopt(&self) -> Answer<'_, Option<Server>> {
        self.upkeep.ask("note the server", move || async move {
            // Connections outlive a failover. They may be dead; or, worse, they may lead to the former primary,
            // which still accepts writes.
            for link in [&self.corridor, &self.pulse, &self.upkeep] {
                link.forget_idle();
            }
            self.effects.forget_idle();
            let adopt = sqlx::query(include_str!("sql/adopt.sql"));
            let former = self.upkeep.session().await?.row(adopt).await?;
            former.as_ref().map(server).transpose()
        })
    }
}

impl PostgresLedger {
    async fn jobs_to_prune(&self, retention: Duration) -> Result<Vec<String>, Failure> {
        let list =
            sqlx::query(include_str!("sql/prune_jobs.sql")).bind(&*self.namespace).bind(millis(retention));
        let list = self.upkeep.session().await?.rows(list).await?;
        list.iter().map(|row| get(row, "name")).collect()
    }

    async fn prune_batch(&self, job: &str, retention: Duration, batch: u32) -> Result<u64, Failure> {
        let prune = sqlx::query(include_str!("sql/prune.sql"))
            .bind(&*self.namespace)
            .bind(job)
            .bind(millis(retention))
            .bind(i64::from(batch));
        let row = self.upkeep.session().await?.row(prune).await?;
        let removed: i64 = row.map(|row| get(&row, "removed")).transpose()?.unwrap_or(0);
        Ok(removed.unsigned_abs())
    }
}
