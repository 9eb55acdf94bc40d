//! A private Redis, a private PostgreSQL, and what a test asks of the rows and effects they left.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use testbed::{Deployment, Effects, PrivatePostgres, PrivateRedis, wait_until_blocking};

/// The servers of one test, nobody else's.
pub(crate) struct Cluster {
    pub(crate) redis: PrivateRedis,
    pub(crate) postgres: PrivatePostgres,
}

impl Cluster {
    pub(crate) fn start() -> Self {
        Self { redis: PrivateRedis::start(), postgres: PrivatePostgres::start() }
    }

    /// A deployment on these servers, with a database of its own.
    pub(crate) fn deployment(&self) -> Deployment {
        Deployment::new(Path::new(env!("CARGO_BIN_EXE_runner")))
            .redis(self.redis.url())
            .ledger(self.postgres.create_database())
    }
}

/// Lets real time pass: the fault under test is a span of time.
pub(crate) fn let_pass(span: Duration) {
    std::thread::sleep(span);
}

/// Waits until `count` firings of `job` have been started.
#[track_caller]
pub(crate) fn wait_for_starts(effects: &Effects, job: &str, count: usize, deadline: Duration) {
    wait_until_blocking(deadline, || {
        let seen = effects.instants(job).len();
        if seen >= count { Ok(()) } else { Err(format!("{seen} of {count} firings of {job} have started")) }
    });
}

/// Every firing of `job` that was started was started once.
#[track_caller]
pub(crate) fn assert_nothing_doubled(effects: &Effects, job: &str) {
    let doubled: Vec<_> = effects
        .effects_per_firing()
        .into_iter()
        .filter(|((name, ..), count)| name == job && *count > 1)
        .collect();
    assert!(doubled.is_empty(), "started more than once: {doubled:#?}");
}

/// How many rows stand in each `state` or `state(reason)`.
pub(crate) fn states(rows: &[Value]) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for row in rows {
        *counted.entry(state(row)).or_insert(0) += 1;
    }
    counted
}

/// `succeeded`, `skipped(overlap)`, ...
pub(crate) fn state(row: &Value) -> String {
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    match text("reason") {
        reason if reason.is_empty() => text("state"),
        reason => format!("{}({reason})", text("state")),
    }
}

/// The instants of every row follow each other at `period` without a hole, but for the last three
/// seconds: what waited when the last replica left is found by the next one that starts.
#[track_caller]
pub(crate) fn assert_no_gap(rows: &[Value], period: Duration) {
    let instants: Vec<_> = rows
        .iter()
        .map(|row| row["scheduled_at"].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap())
        .collect();
    let Some(last) = instants.last() else { return };
    let settled = instants.iter().filter(|instant| **instant < *last - chrono::TimeDelta::seconds(3));
    let settled: Vec<_> = settled.collect();
    for pair in settled.windows(2) {
        assert_eq!((*pair[1] - *pair[0]).to_std(), Ok(period), "a hole between {} and {}", pair[0], pair[1]);
    }
}
