//! A firing as the ledger has recorded it.

use serde::Serialize;

use crate::firing::{Word, instant};
use crate::ledger::FiringRow;

/// One row of `runner_firings`: its columns, in their order.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct FiringView<'r> {
    id: i64,
    job: &'r str,
    scheduled_at: String,
    shard: u32,
    trigger_key: &'r str,
    origin: &'r str,
    state: &'r str,
    reason: Option<&'r str>,
    attempt: u32,
    crashes: u32,
    fence: Option<i64>,
    claim_id: Option<String>,
    owner: Option<&'r str>,
    exclusive: bool,
    delivery: &'r str,
    due_at: Option<String>,
    expires_at: Option<String>,
    lease_until: Option<String>,
    cancel_requested: bool,
    created_at: String,
    started_at: Option<String>,
    finished_at: Option<String>,
    error: Option<&'r str>,
    output: Option<&'r str>,
}

impl<'r> From<&'r FiringRow> for FiringView<'r> {
    fn from(row: &'r FiringRow) -> Self {
        Self {
            id: row.id.0,
            job: &row.job,
            scheduled_at: instant(row.scheduled_at),
            shard: row.shard,
            trigger_key: &row.trigger_key,
            origin: row.origin.as_str(),
            state: row.state.as_str(),
            reason: row.reason.as_ref().map(Word::as_str),
            attempt: row.attempt,
            crashes: row.crashes,
            fence: row.fence,
            claim_id: row.claim_id.map(|id| id.to_string()),
            owner: row.owner.as_deref(),
            exclusive: row.exclusive,
            delivery: row.delivery.as_str(),
            due_at: row.due_at.map(instant),
            expires_at: row.expires_at.map(instant),
            lease_until: row.lease_until.map(instant),
            cancel_requested: row.cancel_requested,
            created_at: instant(row.created_at),
            started_at: row.started_at.map(instant),
            finished_at: row.finished_at.map(instant),
            error: row.error.as_deref(),
            output: row.output.as_deref(),
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::{DateTime, Utc};

    use super::*;
    use crate::firing::{Delivery, FiringId, Origin, Reason, State};

    #[test]
    fn a_firing_has_the_ledgers_columns_and_milliseconds_only_where_there_are_any() {
        let at = |text: &str| text.parse::<DateTime<Utc>>().expect("an instant");
        let row = FiringRow {
            id: FiringId(7),
            job: "orders".to_owned(),
            scheduled_at: at("2026-03-29T01:00:00Z"),
            shard: 0,
            trigger_key: String::new(),
            origin: Origin::Schedule.into(),
            state: State::Failed.into(),
            reason: Some(Reason::Timeout.into()),
            attempt: 2,
            crashes: 0,
            fence: Some(12),
            claim_id: None,
            owner: Some("web-1-3fa85f64".to_owned()),
            exclusive: true,
            delivery: Delivery::AtLeastOnce.into(),
            due_at: None,
            expires_at: None,
            lease_until: None,
            cancel_requested: false,
            created_at: at("2026-03-29T01:00:00.004Z"),
            started_at: Some(at("2026-03-29T01:00:00.004Z")),
            finished_at: Some(at("2026-03-29T01:00:02.254Z")),
            error: Some("\nran longer than 2s\nand was stopped".to_owned()),
            output: None,
        };
        assert_eq!(
            serde_json::to_string(&FiringView::from(&row)).expect("JSON"),
            concat!(
                r#"{"id":7,"job":"orders","scheduled_at":"2026-03-29T01:00:00Z","shard":0,"trigger_key":"","#,
                r#""origin":"schedule","state":"failed","reason":"timeout","attempt":2,"crashes":0,"fence":12,"#,
                r#""claim_id":null,"owner":"web-1-3fa85f64","exclusive":true,"delivery":"at_least_once","#,
                r#""due_at":null,"expires_at":null,"lease_until":null,"cancel_requested":false,"#,
                r#""created_at":"2026-03-29T01:00:00.004Z","started_at":"2026-03-29T01:00:00.004Z","#,
                r#""finished_at":"2026-03-29T01:00:02.254Z","#,
                r#""error":"\nran longer than 2s\nand was stopped","output":null}"#,
            )
        );
    }
}
