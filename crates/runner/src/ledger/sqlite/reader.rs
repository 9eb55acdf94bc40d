//! Reading, without any write.

use sqlx::sqlite::SqliteRow;

use super::cells;
use super::fault::Fault;
use super::{SqliteLedger, SqliteStatement};
use crate::ledger::{
    Answer, AttemptRow, Counted, FiringId, FiringRow, HistoryFilter, JobRow, Reader, Reading,
};

impl Reader for SqliteLedger {
    fn now(&self) -> Answer<'_, Reading> {
        self.answer("read the ledger's clock", async move {
            let mut conn = self.readers.lend().await?;
            let row = sqlx::query(include_str!("sql/now.sql")).fetch_one(&mut *conn).await?;
            conn.give_back();
            Ok(Reading { now: cells::instant(&row, "now")?, server: None })
        })
    }

    fn history<'a>(&'a self, filter: &'a HistoryFilter) -> Answer<'a, Vec<FiringRow>> {
        let limit = if filter.limit == 0 { -1 } else { i64::from(filter.limit) };
        let statement = sqlx::query(include_str!("sql/history.sql"))
            .bind(&*self.namespace)
            .bind(filter.job.as_deref())
            .bind(filter.state.map(|state| state.as_str()))
            .bind(filter.from.map(|from| from.timestamp_millis()))
            .bind(filter.until.map(|until| until.timestamp_millis()))
            .bind(limit);
        self.answer("read the history", self.rows(statement, cells::firing))
    }

    fn firing(&self, id: FiringId) -> Answer<'_, Option<FiringRow>> {
        let statement = sqlx::query(include_str!("sql/firing.sql")).bind(&*self.namespace).bind(id.0);
        self.answer("read a firing", async move { Ok(self.rows(statement, cells::firing).await?.pop()) })
    }

    fn attempts(&self, id: FiringId) -> Answer<'_, Vec<AttemptRow>> {
        let statement = sqlx::query(include_str!("sql/attempts.sql")).bind(&*self.namespace).bind(id.0);
        self.answer("read the attempts of a firing", self.rows(statement, cells::attempt))
    }

    fn jobs(&self) -> Answer<'_, Vec<JobRow>> {
        let statement = sqlx::query(include_str!("sql/jobs.sql")).bind(&*self.namespace);
        self.answer("read the jobs", self.rows(statement, cells::job))
    }

    fn counts(&self) -> Answer<'_, Vec<Counted>> {
        let statement = sqlx::query(include_str!("sql/counts.sql")).bind(&*self.namespace);
        self.answer("count the firings", self.rows(statement, cells::counted))
    }
}

impl SqliteLedger {
    /// All rows of a statement that only reads.
    pub(super) async fn rows<T>(
        &self,
        statement: SqliteStatement<'_>,
        read: fn(&SqliteRow) -> Result<T, Fault>,
    ) -> Result<Vec<T>, Fault> {
        let mut conn = self.readers.lend().await?;
        let rows = statement.fetch_all(&mut *conn).await?;
        conn.give_back();
        rows.iter().map(read).collect()
    }
}
