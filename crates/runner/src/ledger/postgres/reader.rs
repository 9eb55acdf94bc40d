//! Reading, without any write.

use sqlx::postgres::PgRow;

use super::PostgresLedger;
use super::failure::Failure;
use super::rows::{self, get, word};
use crate::ledger::{
    Answer, AttemptRow, Counted, FiringId, FiringRow, HistoryFilter, JobRow, Reader, Reading, Server,
};

impl Reader for PostgresLedger {
    fn now(&self) -> Answer<'_, Reading> {
        self.upkeep.ask("read the clock", move || async move {
            let mut session = self.upkeep.session().await?;
            let row = session.row(sqlx::query(include_str!("sql/now.sql"))).await?;
            let row = row.ok_or_else(|| Failure::Corrupt("the clock gave no row".into()))?;
            if get(&row, "only_reads")? {
                // The host name may point to another server by now.
                session.give_up();
                return Err(Failure::OnlyReads);
            }
            Ok(Reading { now: get(&row, "now")?, server: Some(server(&row)?) })
        })
    }

    fn history<'a>(&'a self, filter: &'a HistoryFilter) -> Answer<'a, Vec<FiringRow>> {
        self.upkeep.ask("read the history", move || async move {
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
        })
    }

    fn firing(&self, id: FiringId) -> Answer<'_, Option<FiringRow>> {
        self.upkeep.ask("read a firing", move || async move {
            let firing = sqlx::query(include_str!("sql/firing.sql")).bind(&*self.namespace).bind(id.0);
            let row = self.upkeep.session().await?.row(firing).await?;
            row.as_ref().map(rows::firing_row).transpose()
        })
    }

    fn attempts(&self, id: FiringId) -> Answer<'_, Vec<AttemptRow>> {
        self.upkeep.ask("read the attempts", move || async move {
            let attempts = sqlx::query(include_str!("sql/attempts.sql")).bind(&*self.namespace).bind(id.0);
            let list = self.upkeep.session().await?.rows(attempts).await?;
            list.iter().map(rows::attempt_row).collect()
        })
    }

    fn jobs(&self) -> Answer<'_, Vec<JobRow>> {
        self.upkeep.ask("read the jobs", move || async move {
            let jobs = sqlx::query(include_str!("sql/jobs.sql")).bind(&*self.namespace);
            let list = self.upkeep.session().await?.rows(jobs).await?;
            list.iter().map(rows::job_row).collect()
        })
    }

    fn counts(&self) -> Answer<'_, Vec<Counted>> {
        self.upkeep.ask("count the rows", move || async move {
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
        })
    }
}

/// The server that a row names.
pub(super) fn server(row: &PgRow) -> Result<Server, Failure> {
    Ok(Server { system: get(row, "system")?, timeline: get(row, "timeline")? })
}
