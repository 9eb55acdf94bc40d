//! Where the work of these tests is counted, and what the ledger says about it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use runner::sqlx::{self, Connection as _, Row as _, SqliteConnection};
use serde_json::Value;
use testbed::rows::state;
use testbed::{Cluster, Deployment, PrivatePostgres, Replica, wait_until_blocking};

use crate::program;

/// Longer than a drain takes.
const DRAIN: Duration = Duration::from_secs(30);

/// Nothing in it is unique: what happens twice is there twice.
pub(crate) const TABLE: &str =
    "CREATE TABLE effects (job text, scheduled_at text, shard int, attempt int, fence bigint)";

/// The `params` of an `sql` job that counts itself and then does `rest`.
pub(crate) fn counting(rest: &str) -> String {
    format!(
        "kind = \"sql\"\nparams = {{ statement = \"\"\"\nINSERT INTO effects VALUES (:job, \
         CAST(:idempotency_key AS text), :shard, :attempt, :fence);\n{rest}\"\"\" }}"
    )
}

/// A deployment on the servers of `cluster` whose database has the table; and its address.
pub(crate) fn on(cluster: &Cluster) -> (Deployment, String) {
    let database = cluster.postgres.create_database();
    PrivatePostgres::sql_at(&database, TABLE);
    let deployment = Deployment::new(program()).redis(cluster.redis.url()).ledger(database.clone());
    (deployment, database)
}

/// How often each firing has left its effect, by idempotency key.
pub(crate) fn effects(database: &str, job: &str) -> BTreeMap<String, usize> {
    let list =
        PrivatePostgres::sql_at(database, &format!("SELECT scheduled_at FROM effects WHERE job = '{job}'"));
    counted(list.lines().map(str::to_owned))
}

/// The same in a SQLite file.
pub(crate) fn effects_in_file(file: &Path, job: &str) -> BTreeMap<String, usize> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let mut file = SqliteConnection::connect(&format!("sqlite:{}", file.display())).await.unwrap();
        let rows = sqlx::query("SELECT scheduled_at FROM effects WHERE job = ?1").bind(job.to_owned());
        let rows = rows.fetch_all(&mut file).await.unwrap();
        counted(rows.iter().map(|row| row.get::<String, _>(0)))
    })
}

fn counted(keys: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counted = BTreeMap::new();
    for key in keys {
        *counted.entry(key).or_insert(0) += 1;
    }
    counted
}

/// Each row of `job` says succeeded, and each has left its effect once; no effect is without a row.
#[track_caller]
pub(crate) fn assert_one_effect_each(deployment: &Deployment, job: &str, effects: &BTreeMap<String, usize>) {
    let rows = deployment.history(job);
    let others: Vec<_> = rows.iter().filter(|row| state(row) != "succeeded").collect();
    assert!(others.is_empty(), "{job} did not always succeed: {others:#?}");
    let expected: BTreeMap<_, _> = rows.iter().map(|row| (key(deployment, job, row), 1)).collect();
    let wrong: Vec<_> = expected
        .keys()
        .chain(effects.keys())
        .filter(|key| effects.get(*key) != expected.get(*key))
        .map(|key| (key, expected.get(key), effects.get(key)))
        .collect();
    assert!(wrong.is_empty(), "{job}: firing, rows, effects: {wrong:#?}");
}

fn key(deployment: &Deployment, job: &str, row: &Value) -> String {
    let at = row["scheduled_at"].as_str().unwrap();
    format!("{}/{job}/{at}/{}", deployment.namespace(), row["shard"])
}

/// Waits until no firing runs or waits any more.
#[track_caller]
pub(crate) fn wait_until_all_ended(deployment: &Deployment, job: &str) {
    wait_until_blocking(Duration::from_secs(40), || {
        let rows = deployment.history(job);
        let open: Vec<_> =
            rows.iter().filter(|row| matches!(row["state"].as_str(), Some("running" | "queued"))).collect();
        if open.is_empty() { Ok(()) } else { Err(format!("{open:?}")) }
    });
}

/// Ends all of them in order.
#[track_caller]
pub(crate) fn end(replicas: &mut [Replica]) {
    for replica in &mut *replicas {
        replica.terminate();
    }
    for replica in replicas {
        let status = replica.wait_exit(DRAIN);
        assert!(status.success(), "SIGTERM ended a replica with {status:?}\n{}", replica.lines().tail());
    }
}
