//! Reading how far gaps are decided, and deciding more of them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use super::PostgresLedger;
use super::rows::{count, get, int, millis, nominal};
use crate::ledger::{Answer, Decision, Gaps, Horizon, Question};

impl Gaps for PostgresLedger {
    fn horizons<'a>(&'a self, questions: &'a [Question]) -> Answer<'a, Vec<Horizon>> {
        self.upkeep.ask("look for gaps", move || async move {
            let names: Vec<&str> = questions.iter().map(|question| question.job.as_str()).collect();
            let back: Vec<i64> = questions.iter().map(|question| millis(question.reach_back)).collect();
            let read =
                sqlx::query(include_str!("sql/horizons.sql")).bind(&*self.namespace).bind(names).bind(back);
            let mut horizons: BTreeMap<String, Horizon> = BTreeMap::new();
            for row in self.upkeep.session().await?.rows(read).await? {
                let job: String = get(&row, "name")?;
                let decided_until = get(&row, "decided_until")?;
                let horizon = horizons.entry(job.clone()).or_insert_with(|| Horizon {
                    job,
                    decided_until,
                    rows: Vec::new(),
                });
                if let Some(scheduled_at) = get::<Option<DateTime<Utc>>>(&row, "scheduled_at")? {
                    horizon.rows.push((scheduled_at, count(&row, "shard")?));
                }
            }
            Ok(horizons.into_values().collect())
        })
    }

    fn decide<'a>(&'a self, decision: &'a Decision) -> Answer<'a, bool> {
        self.upkeep.ask("decide about gaps", move || async move {
            let gaps = &decision.gaps;
            let instants: Vec<DateTime<Utc>> = gaps.iter().map(|gap| nominal(gap.scheduled_at)).collect();
            let shards: Vec<i32> = gaps.iter().map(|gap| int(gap.shard)).collect();
            let run: Vec<bool> = gaps.iter().map(|gap| gap.run).collect();
            let details: Vec<Option<&str>> = gaps.iter().map(|gap| gap.detail.as_deref()).collect();
            let decide = sqlx::query(include_str!("sql/decide.sql"))
                .bind(&*self.namespace)
                .bind(&decision.job)
                .bind(decision.decided_until)
                .bind(decision.until)
                .bind(decision.exclusive)
                .bind(decision.delivery.as_str())
                .bind(millis(decision.expires_in))
                .bind(instants)
                .bind(shards)
                .bind(run)
                .bind(details);
            let row = self.upkeep.session().await?.row(decide).await?;
            Ok(row.map(|row| get::<bool>(&row, "decided")).transpose()?.unwrap_or(false))
        })
    }
}
