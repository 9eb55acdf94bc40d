//! What the ledger knows of jobs: that they exist, whether they are paused, how far they are pruned.

use std::time::Duration;

use super::PostgresLedger;
use super::failure::Failure;
use super::rows::{get, millis, text};
use crate::ledger::JobRegistration;

impl PostgresLedger {
    pub(super) async fn register_jobs(&self, jobs: &[JobRegistration]) -> Result<(), Failure> {
        let names: Vec<&str> = jobs.iter().map(|job| job.name.as_str()).collect();
        let hashes: Vec<&str> = jobs.iter().map(|job| job.spec_hash.as_str()).collect();
        let register =
            sqlx::query(include_str!("sql/register.sql")).bind(&*self.namespace).bind(names).bind(hashes);
        self.upkeep.session().await?.row(register).await?;
        Ok(())
    }

    pub(super) async fn pause_job(&self, job: &str, by: &str, note: &str) -> Result<bool, Failure> {
        let pause = sqlx::query(include_str!("sql/pause.sql"))
            .bind(&*self.namespace)
            .bind(job)
            .bind(text(by))
            .bind(text(note));
        Ok(self.upkeep.session().await?.row(pause).await?.is_some())
    }

    pub(super) async fn resume_job(&self, job: &str) -> Result<bool, Failure> {
        let resume = sqlx::query(include_str!("sql/resume.sql")).bind(&*self.namespace).bind(job);
        Ok(self.upkeep.session().await?.row(resume).await?.is_some())
    }

    pub(super) async fn jobs_to_prune(&self, retention: Duration) -> Result<Vec<String>, Failure> {
        let list =
            sqlx::query(include_str!("sql/prune_jobs.sql")).bind(&*self.namespace).bind(millis(retention));
        let list = self.upkeep.session().await?.rows(list).await?;
        list.iter().map(|row| get(row, "name")).collect()
    }

    pub(super) async fn prune_batch(
        &self,
        job: &str,
        retention: Duration,
        batch: u32,
    ) -> Result<u64, Failure> {
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
