//! Reads in one statement everything that can forbid a row.

use sqlx::Row as _;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::SqliteLedger;
use super::cells;
use super::fault::Fault;
use crate::firing::Firing;
use crate::rules::{KnownJob, OwnRow, View};

impl SqliteLedger {
    /// What forbids a row for `firing`.
    pub(super) async fn look(&self, conn: &mut SqliteConnection, firing: &Firing) -> Result<View, Fault> {
        view(&self.about(include_str!("sql/refusal.sql"), firing).fetch_one(conn).await?)
    }
}

fn view(row: &SqliteRow) -> Result<View, Fault> {
    let job = if cells::flag(row, "registered")? {
        Some(KnownJob { paused: cells::flag(row, "paused")?, pruned: cells::flag(row, "pruned")? })
    } else {
        None
    };
    let own = match cells::found(row)? {
        Some(found) => {
            let won = match row.try_get::<Option<i64>, _>("fence")? {
                Some(_) => Some(cells::won(row)?),
                None => None,
            };
            let due_at = cells::maybe_instant(row, "due_at")?;
            Some(OwnRow { found, claim_id: cells::claim_id(row)?, won, due_at })
        }
        None => None,
    };
    Ok(View {
        now: cells::instant(row, "now")?,
        job,
        own,
        running: cells::blocker(row)?,
        one_waits: cells::flag(row, "one_waits")?,
    })
}
