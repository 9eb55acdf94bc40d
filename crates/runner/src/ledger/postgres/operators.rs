//! What people ask for.

use super::PostgresLedger;
use super::rows::text;
use crate::ledger::{Answer, FiringId, Operators};

impl Operators for PostgresLedger {
    fn pause<'a>(&'a self, job: &'a str, by: &'a str, note: &'a str) -> Answer<'a, bool> {
        self.upkeep.ask("pause a job", move || async move {
            let pause = sqlx::query(include_str!("sql/pause.sql"))
                .bind(&*self.namespace)
                .bind(job)
                .bind(text(by))
                .bind(text(note));
            Ok(self.upkeep.session().await?.row(pause).await?.is_some())
        })
    }

    fn resume<'a>(&'a self, job: &'a str) -> Answer<'a, bool> {
        self.upkeep.ask("resume a job", move || async move {
            let resume = sqlx::query(include_str!("sql/resume.sql")).bind(&*self.namespace).bind(job);
            Ok(self.upkeep.session().await?.row(resume).await?.is_some())
        })
    }

    fn cancel(&self, id: FiringId) -> Answer<'_, bool> {
        self.upkeep.ask("cancel a firing", move || async move {
            let cancel = sqlx::query(include_str!("sql/cancel.sql")).bind(&*self.namespace).bind(id.0);
            Ok(self.upkeep.session().await?.row(cancel).await?.is_some())
        })
    }
}
