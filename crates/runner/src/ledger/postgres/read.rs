//! Looking without writing.

use super::PostgresLedger;
use super::failure::Failure;
use super::rows::{self, get, word};
use crate::ledger::{AttemptRow, Counted, FiringId, FiringRow, HistoryFilter, JobRow};

impl PostgresLedger {
    pub(super) async fn read_history(&self, filter: &HistoryFilter) -> Result<Vec<FiringRow>, Failure> {
        let limit = (filter.limit > 0).then_some(i64::from(filter.limit));
        let history = sqlx::query(include_str!("sql/history.sql"))
            .bind(&*self.namespace)
            .bind(&filter.job)
            .bind(filter.state.map(|state| state.as_str()))
            .bind(filter.from)
            .bind(filter.until)
            .bind(limit);
        let list = self.upkeep.session().await?.rows(history).await?;
        list.iter().map(rows::firing_row).collect()
    }

    pub(super) async fn read_firing(&self, id: FiringId) -> Result<Option<FiringRow>, Failure> {
        let firing = sqlx::query(include_str!("sql/firing.sql")).bind(&*self.namespace).bind(id.0);
        let row = self.upkeep.session().await?.row(firing).await?;
        row.as_ref().map(rows::firing_row).transpose()
    }

    pub(super) async fn read_attempts(&self, id: FiringId) -> Result<Vec<AttemptRow>, Failure> {
        let attempts = sqlx::query(include_str!("sql/attempts.sql")).bind(&*self.namespace).bind(id.0);
        let list = self.upkeep.session().await?.rows(attempts).await?;
        list.iter().map(rows::attempt_row).collect()
    }

    pub(super) async fn read_jobs(&self) -> Result<Vec<JobRow>, Failure> {
        let jobs = sqlx::query(include_str!("sql/jobs.sql")).bind(&*self.namespace);
        let list = self.upkeep.session().await?.rows(jobs).await?;
        list.iter().map(rows::job_row).collect()
    }

    pub(super) async fn count_rows(&self) -> Result<Vec<Counted>, Failure> {
        let counts = sqlx::query(include_str!("sql/counts.sql")).bind(&*self.namespace);
        let list = self.upkeep.session().await?.rows(counts).await?;
        list.iter()
            .map(|row| {
                Ok(Counted {
                    job: get(row, "job")?,
                    state: word(row, "state")?,
                    rows: get::<i64>(row, "rows")?.unsigned_abs(),
                })
            })
            .collect()
    }
}
