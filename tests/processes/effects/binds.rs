//! What a statement is handed, and what its failure means.

use runner::sqlx::{self, Connection as _, SqliteConnection};
use testbed::rows::state;
use testbed::{Cluster, Deployment, PrivatePostgres};

use crate::{embedded, program};

/// Every bind, in a file with all that must not be taken for one.
const FILE: &str = "
-- :nothing; here
CREATE TABLE IF NOT EXISTS seen (job text, scheduled_at text, of_shards text, fence bigint, attempt int, idempotency_key text);
INSERT INTO seen
VALUES (:job, CAST(:scheduled_at AS text), CAST(:shard AS text) || '/:shard;' || CAST(:shards AS text), :fence, :attempt, :idempotency_key);
";
const SEEN: &str =
    "SELECT job || ' ' || of_shards || ' ' || fence || ' ' || attempt || ' ' || idempotency_key FROM seen";

fn with_file(deployment: Deployment) -> Deployment {
    std::fs::write(deployment.dir().join("seen.sql"), FILE).unwrap();
    deployment.jobs("[jobs.look]\nevery = \"1h\"\nkind = \"sql\"\nparams = { file = \"seen.sql\" }")
}

/// Runs the job once and gives the one row of the ledger.
fn exec(deployment: &Deployment, job: &str, succeeds: bool) -> (serde_json::Value, testbed::Finished) {
    let done = deployment.run(&["exec", job]);
    assert_eq!(done.status.success(), succeeds, "{done:?}");
    let rows = deployment.history(job);
    let [row] = rows.as_slice() else { panic!("{rows:?}") };
    (row.clone(), done)
}

fn seen_by(deployment: &Deployment, row: &serde_json::Value) -> String {
    let (at, key) = (row["scheduled_at"].as_str().unwrap(), row["trigger_key"].as_str().unwrap());
    let fence = row["fence"].as_i64().unwrap();
    format!("look 0/:shard;1 {fence} 1 {}/look/{at}/0/{key}", deployment.namespace())
}

#[test]
fn a_statement_in_postgres_is_handed_its_run() {
    let cluster = Cluster::start();
    let deployment = with_file(cluster.deployment(program()));
    let database = cluster.postgres.create_database();
    let deployment = deployment.ledger(database.clone());
    let (row, done) = exec(&deployment, "look", true);
    assert_eq!(done.stdout, "statement 1: 0 rows\nstatement 2: 1 rows\n");
    assert_eq!(row["output"], done.stdout.as_str());
    assert_eq!(PrivatePostgres::sql_at(&database, SEEN), seen_by(&deployment, &row));
    let same =
        "SELECT seen.scheduled_at::timestamptz = firing.scheduled_at FROM seen, runner_firings AS firing";
    assert_eq!(PrivatePostgres::sql_at(&database, same), "t");
}

#[test]
fn a_statement_in_sqlite_is_handed_its_run() {
    let deployment = with_file(embedded());
    let (row, done) = exec(&deployment, "look", true);
    assert_eq!(done.stdout, "statement 1: 0 rows\nstatement 2: 1 rows\n");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (seen, at): (String, String) = runtime.block_on(async {
        let url = format!("sqlite:{}", deployment.dir().join("runner.db").display());
        let mut file = SqliteConnection::connect(&url).await.unwrap();
        let seen = sqlx::query_scalar(SEEN).fetch_one(&mut file).await.unwrap();
        (seen, sqlx::query_scalar("SELECT scheduled_at FROM seen").fetch_one(&mut file).await.unwrap())
    });
    assert_eq!(seen, seen_by(&deployment, &row));
    assert_eq!(row["scheduled_at"], at.as_str());
}

#[test]
fn a_mistake_fails_at_once_and_what_the_data_refuse_is_tried_again() {
    let cluster = Cluster::start();
    let file = |deployment: Deployment| {
        let keys =
            "every = \"1h\"\nkind = \"sql\"\nmax_attempts = 3\nbackoff = { initial = \"1h\", max = \"1h\" }";
        let job = |name: &str, statement: &str| {
            format!("[jobs.{name}]\n{keys}\nparams = {{ statement = \"{statement}\" }}\n")
        };
        deployment
            .jobs(&job("typo", "SELEKT 1"))
            .jobs(&job("absent", "SELECT 1; DELETE FROM nowhere"))
            .jobs(&job("taken", "CREATE TABLE one (n int PRIMARY KEY); INSERT INTO one VALUES (1), (1)"))
    };
    for deployment in [file(cluster.deployment(program())), file(embedded())] {
        for (job, number, ended) in
            [("typo", 1, "failed(error)"), ("absent", 2, "failed(error)"), ("taken", 2, "queued(retry)")]
        {
            let (row, done) = exec(&deployment, job, false);
            assert_eq!(state(&row), ended, "{job}: {done:?}");
            let error = row["error"].as_str().unwrap();
            assert!(error.starts_with(&format!("statement {number}: ")), "{job}: {error}");
        }
    }
}

#[test]
fn a_question_mark_stands_for_nothing_in_sqlite() {
    let deployment =
        embedded().jobs("[jobs.ask]\nevery = \"1h\"\nkind = \"sql\"\nparams = { statement = \"SELECT ?\" }");
    let (row, _) = exec(&deployment, "ask", false);
    assert_eq!(state(&row), "failed(error)");
}
