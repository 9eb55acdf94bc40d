//! Reading how far gaps are decided, and deciding more of them.

use std::collections::BTreeMap;

use sqlx::Row;

use super::SqliteLedger;
use super::cells::{self, millis};
use crate::ledger::{Answer, Decision, Gaps, Horizon, Question};

impl Gaps for SqliteLedger {
    fn horizons<'a>(&'a self, questions: &'a [Question]) -> Answer<'a, Vec<Horizon>> {
        self.answer("look for gaps", async move {
            let asked: Vec<serde_json::Value> = questions
                .iter()
                .map(|question| serde_json::json!([question.job, millis(question.reach_back)]))
                .collect();
            let read = sqlx::query(include_str!("sql/horizons.sql"))
                .bind(&*self.namespace)
                .bind(serde_json::Value::from(asked).to_string());
            let mut horizons: BTreeMap<String, Horizon> = BTreeMap::new();
            let rows = self
                .rows(read, |row| {
                    let firing = match row.try_get::<Option<i64>, _>("scheduled_at")? {
                        Some(_) => Some((cells::instant(row, "scheduled_at")?, cells::small(row, "shard")?)),
                        None => None,
                    };
                    Ok((row.try_get::<String, _>("name")?, cells::instant(row, "decided_until")?, firing))
                })
                .await?;
            for (job, decided_until, firing) in rows {
                let horizon = horizons.entry(job.clone()).or_insert_with(|| Horizon {
                    job,
                    decided_until,
                    rows: Vec::new(),
                });
                horizon.rows.extend(firing);
            }
            Ok(horizons.into_values().collect())
        })
    }

    fn decide<'a>(&'a self, decision: &'a Decision) -> Answer<'a, bool> {
        self.answer("decide about gaps", async move {
            let mut write = self.writer.begin().await?;
            let raised = sqlx::query(include_str!("sql/decide.sql"))
                .bind(&*self.namespace)
                .bind(&decision.job)
                .bind(decision.decided_until.timestamp_millis())
                .bind(decision.until.timestamp_millis())
                .execute(&mut *write)
                .await?
                .rows_affected();
            if raised == 0 {
                write.roll_back().await?;
                return Ok(false);
            }
            for gap in &decision.gaps {
                sqlx::query(include_str!("sql/fill_gap.sql"))
                    .bind(&*self.namespace)
                    .bind(&decision.job)
                    .bind(gap.scheduled_at.timestamp_millis())
                    .bind(gap.shard)
                    .bind(gap.run)
                    .bind(decision.exclusive)
                    .bind(decision.delivery.as_str())
                    .bind(millis(decision.expires_in))
                    .bind(&gap.detail)
                    .execute(&mut *write)
                    .await?;
            }
            write.commit().await?;
            Ok(true)
        })
    }
}
