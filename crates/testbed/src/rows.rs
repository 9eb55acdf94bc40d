//! Reads values from the ledger's rows, as `runner history` prints them.

use std::collections::BTreeMap;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

/// How many rows are in each `state` or `state(reason)`.
#[must_use]
pub fn states(rows: &[Value]) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for row in rows {
        *counted.entry(state(row)).or_insert(0) += 1;
    }
    counted
}

/// `succeeded`, `skipped(overlap)`, …
#[must_use]
pub fn state(row: &Value) -> String {
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    match text("reason") {
        reason if reason.is_empty() => text("state"),
        reason => format!("{}({reason})", text("state")),
    }
}

/// A time in a row.
///
/// # Panics
/// When the row has no time in this column.
#[must_use]
pub fn instant(row: &Value, column: &str) -> DateTime<Utc> {
    let text = row[column].as_str().unwrap_or_else(|| panic!("no {column} in {row}"));
    text.parse().unwrap_or_else(|error| panic!("{column} in {row}: {error}"))
}

/// A number in a row.
///
/// # Panics
/// When the row has no number in this column.
#[must_use]
pub fn number(row: &Value, column: &str) -> u64 {
    row[column].as_u64().unwrap_or_else(|| panic!("no {column} in {row}"))
}

/// Asserts that the rows' instants follow each other at `period` without a gap. The last three seconds do not
/// count: firings that waited when the last replica ended are left to the next replica that starts.
///
/// # Panics
/// When there is a gap.
#[track_caller]
pub fn assert_no_gap(rows: &[Value], period: Duration) {
    let instants: Vec<_> = rows.iter().map(|row| instant(row, "scheduled_at")).collect();
    let Some(last) = instants.last() else { return };
    let settled: Vec<_> =
        instants.iter().filter(|instant| **instant < *last - TimeDelta::seconds(3)).collect();
    for pair in settled.windows(2) {
        assert_eq!((*pair[1] - *pair[0]).to_std(), Ok(period), "a gap between {} and {}", pair[0], pair[1]);
    }
}
