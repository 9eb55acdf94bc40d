//! Runs whose owner may be gone.

use std::time::Duration;

use super::PostgresLedger;
use super::rows::{self, get, int, millis, our_word, word};
use crate::firing::Reason;
use crate::ledger::{Answer, Running, Suspect, Sweeping, Swept};

impl Sweeping for PostgresLedger {
    fn running(&self) -> Answer<'_, Vec<Running>> {
        self.upkeep.ask("list the runs", move || async move {
            let running = sqlx::query(include_str!("sql/running.sql")).bind(&*self.namespace);
            let list = self.upkeep.session().await?.rows(running).await?;
            list.iter()
                .map(|row| {
                    Ok(Running {
                        run: rows::run(row)?,
                        job: get(row, "job")?,
                        scheduled_at: get(row, "scheduled_at")?,
                        owner: get(row, "owner")?,
                        delivery: word(row, "delivery")?,
                        lease_until: get(row, "lease_until")?,
                        remaining: Duration::try_from_secs_f64(get(row, "remaining")?).unwrap_or_default(),
                    })
                })
                .collect()
        })
    }

    fn sweep<'a>(&'a self, suspects: &'a [Suspect]) -> Answer<'a, Vec<Swept>> {
        self.upkeep.ask("sweep", move || async move {
            let sweep = sqlx::query(include_str!("sql/sweep.sql"))
                .bind(&*self.namespace)
                .bind(column(suspects, |suspect| suspect.run.id.0))
                .bind(column(suspects, |suspect| suspect.run.fence.0))
                .bind(column(suspects, |suspect| suspect.lease_until))
                .bind(column(suspects, |suspect| int(suspect.max_crashes)))
                .bind(column(suspects, |suspect| millis(suspect.expires_in)));
            let list = self.upkeep.session().await?.rows(sweep).await?;
            list.iter()
                .map(|row| {
                    let reason: Option<&str> = get(row, "reason")?;
                    Ok(Swept {
                        run: rows::run(row)?,
                        job: get(row, "job")?,
                        state: our_word(row, "state")?,
                        reason: reason.map(str::parse::<Reason>).transpose()?,
                    })
                })
                .collect()
        })
    }
}

fn column<T>(suspects: &[Suspect], part: impl Fn(&Suspect) -> T) -> Vec<T> {
    suspects.iter().map(part).collect()
}
