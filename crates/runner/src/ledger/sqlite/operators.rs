//! What people ask for.

use super::fault::Fault;
use super::{SqliteLedger, SqliteStatement};
use crate::ledger::{Answer, FiringId, Operators};

impl Operators for SqliteLedger {
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

    fn cancel(&self, id: FiringId) -> Answer<'_, bool> {
        self.answer("cancel a firing", async move {
            let statement = sqlx::query(include_str!("sql/cancel.sql"));
            self.touches_one(statement.bind(&*self.namespace).bind(id.0)).await
        })
    }
}

impl SqliteLedger {
    /// Runs a statement that changes one row or none, and says which.
    async fn touches_one(&self, statement: SqliteStatement<'_>) -> Result<bool, Fault> {
        let mut write = self.writer.begin().await?;
        let touched = statement.execute(&mut *write).await?.rows_affected();
        write.commit().await?;
        Ok(touched == 1)
    }
}
