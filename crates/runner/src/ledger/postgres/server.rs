//! Which server this is, read and written down.

use sqlx::postgres::PgRow;

use super::PostgresLedger;
use super::failure::Failure;
use super::rows::get;
use crate::ledger::{Reading, Server};

impl PostgresLedger {
    pub(super) async fn read_clock(&self) -> Result<Reading, Failure> {
        let mut session = self.upkeep.session().await?;
        let row = session.row(sqlx::query(include_str!("sql/now.sql"))).await?;
        let row = row.ok_or_else(|| Failure::Corrupt("the clock gave no row".into()))?;
        if get(&row, "only_reads")? {
            // The name may lead to another server by now.
            session.give_up();
            return Err(Failure::OnlyReads);
        }
        Ok(Reading { now: get(&row, "now")?, server: Some(server(&row)?) })
    }

    pub(super) async fn note_server(&self) -> Result<Option<Server>, Failure> {
        // Connections outlive a failover: dead, or, worse, to a former primary that still takes rows.
        for link in [&self.corridor, &self.pulse, &self.upkeep] {
            link.forget_idle();
        }
        self.effects.forget_idle();
        let adopt = sqlx::query(include_str!("sql/adopt.sql"));
        let former = self.upkeep.session().await?.row(adopt).await?;
        former.as_ref().map(server).transpose()
    }
}

fn server(row: &PgRow) -> Result<Server, Failure> {
    Ok(Server { system: get(row, "system")?, timeline: get(row, "timeline")? })
}
