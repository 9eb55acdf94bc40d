//! Jobs of a binary's own that open a transaction: this test program is the binary.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use runner::sqlx::{self, Executor as _};
use runner::{Job, JobContext, JobError, Runner};
use serde::Deserialize;
use testbed::{Cluster, Deployment, PrivatePostgres, Replica, let_pass, wait_until_blocking};

use super::frozen::soon;
use super::table::{TABLE, effects, end};
use crate::program;

/// Tells this test program to be a replica with kinds of its own.
const AS_REPLICA: &str = "EFFECTS_REPLICA_CONFIG";

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Afterwards {
    Fail,
    Panic,
    Linger,
    CommitAgain,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PayParams {
    /// Blocks its thread so long between the work and the commit, in its first attempt.
    #[serde(default)]
    block_ms: u64,
    /// Where it notes how its commit went.
    notes: PathBuf,
    afterwards: Option<Afterwards>,
}

/// Works in a transaction, and may then misbehave.
struct Pay(PayParams);

impl Job for Pay {
    async fn run(&self, ctx: &JobContext) -> Result<(), JobError> {
        let mut transaction = ctx.transaction().await?;
        let insert = sqlx::query("INSERT INTO effects VALUES ($1, $2, $3, $4, $5)")
            .bind(ctx.job())
            .bind(ctx.idempotency_key())
            .bind(i32::try_from(ctx.shard())?)
            .bind(i32::try_from(ctx.attempt())?)
            .bind(ctx.fence().0);
        transaction.postgres()?.execute(insert).await?;
        if ctx.attempt() == 1 {
            std::fs::write(self.0.notes.with_extension("working"), "")?;
            // The job blocks its thread in the middle of its transaction. That is the fault.
            let_pass(Duration::from_millis(self.0.block_ms));
        }
        let committed = transaction.commit().await;
        let note = format!("{} {}", ctx.attempt(), committed.is_ok());
        std::fs::write(self.0.notes.with_extension(ctx.attempt().to_string()), note)?;
        committed?;
        match self.0.afterwards {
            Some(Afterwards::Fail) => Err(JobError::fail("changed its mind")),
            Some(Afterwards::Panic) => panic!("lost its mind"),
            Some(Afterwards::Linger) => std::future::pending().await,
            Some(Afterwards::CommitAgain) => Ok(ctx.transaction().await?.commit().await?),
            None => Ok(()),
        }
    }
}

#[test]
fn as_a_replica() {
    #[expect(clippy::disallowed_methods, reason = "how the test tells its own program what to be")]
    let Ok(config) = std::env::var(AS_REPLICA) else {
        return;
    };
    let code = Runner::builder().kind("pay", |params: PayParams| Ok(Pay(params))).main_from([
        "runner".into(),
        "--config".into(),
        config.into(),
    ]);
    std::process::exit(if code == ExitCode::SUCCESS { 0 } else { 1 });
}

fn replica(deployment: &Deployment) -> Replica {
    let replica = Replica::builder(&std::env::current_exe().unwrap())
        .arg(testbed::test_name!(as_a_replica))
        .arg("--exact")
        .arg("--nocapture")
        .env(AS_REPLICA, deployment.config())
        .cwd(deployment.dir())
        .spawn();
    replica.wait_for_line(Duration::from_secs(30), |line| line.contains("ready"));
    replica
}

/// A deployment whose one job is `pay`, and its database.
fn paying(cluster: &Cluster, params: &str) -> (Deployment, String) {
    let database = cluster.postgres.create_database();
    PrivatePostgres::sql_at(&database, TABLE);
    let deployment = Deployment::new(program()).redis(cluster.redis.url()).ledger(database.clone()).ttl("3s");
    let notes = deployment.dir().join("notes");
    let job = format!(
        "[jobs.pay]\nkind = \"pay\"\n{}\ntimeout = \"20s\"\nmax_attempts = 3\nbackoff = {{ initial = \"100ms\" }}\n\
         params = {{ notes = {notes:?}{params} }}",
        soon()
    );
    (deployment.jobs(&job), database)
}

/// State, attempt and error of the one firing, when it has ended.
fn ended(database: &str) -> String {
    wait_until_blocking(Duration::from_secs(40), || {
        let row = PrivatePostgres::sql_at(
            database,
            "SELECT state, attempt, coalesce(reason, error, '-') FROM runner_firings",
        );
        if row.is_empty() || row.starts_with("running") || row.starts_with("queued") {
            Err(row)
        } else {
            Ok(row)
        }
    })
}

#[test]
fn a_firing_whose_transaction_committed_has_succeeded_whatever_its_job_does_next() {
    for afterwards in ["fail", "panic", "linger", "commit_again"] {
        let cluster = Cluster::start();
        let (deployment, database) = paying(&cluster, &format!(", afterwards = \"{afterwards}\""));
        let mut replica = replica(&deployment);
        replica.wait_for_line(Duration::from_secs(30), |line| {
            line.contains("job=pay") && line.contains(" succeeded")
        });
        assert_eq!(ended(&database), "succeeded|1|-", "{afterwards}");
        assert_eq!(effects(&database, "pay").into_values().collect::<Vec<_>>(), [1], "{afterwards}");
        end(std::slice::from_mut(&mut replica));
        assert_eq!(ended(&database), "succeeded|1|-", "{afterwards}");
    }
}

#[test]
fn a_job_that_is_silent_in_its_transaction_is_thrown_out_and_its_next_try_commits() {
    let cluster = Cluster::start();
    let (deployment, database) = paying(&cluster, ", block_ms = 5000");
    let mut replica = replica(&deployment);
    assert_eq!(ended(&database), "succeeded|2|-");
    assert_eq!(effects(&database, "pay").into_values().collect::<Vec<_>>(), [1]);
    let note =
        |attempt: &str| std::fs::read_to_string(deployment.dir().join("notes").with_extension(attempt));
    assert_eq!((note("1").unwrap().as_str(), note("2").unwrap().as_str()), ("1 false", "2 true"));
    end(std::slice::from_mut(&mut replica));
}

#[test]
fn an_owner_that_wakes_from_a_freeze_in_its_transaction_cannot_commit() {
    let cluster = Cluster::start();
    let (deployment, database) = paying(&cluster, ", block_ms = 2000");
    let mut owner = replica(&deployment);
    let notes = deployment.dir().join("notes");
    wait_until_blocking(Duration::from_secs(30), || {
        if notes.with_extension("working").exists() { Ok(()) } else { Err("it is not at work yet".into()) }
    });
    owner.stop();
    let mut other = replica(&deployment);
    assert_eq!(ended(&database), "succeeded|2|-");
    owner.cont();
    let note = wait_until_blocking(Duration::from_secs(20), || {
        let note = std::fs::read_to_string(notes.with_extension("1")).unwrap_or_default();
        if note.is_empty() { Err("it has not noted how its commit went".into()) } else { Ok(note) }
    });
    assert_eq!(note, "1 false");
    owner.wait_for_line(Duration::from_secs(20), |line| line.contains("its result is void"));
    assert_eq!(ended(&database), "succeeded|2|-");
    assert_eq!(effects(&database, "pay").into_values().collect::<Vec<_>>(), [1]);
    end(std::slice::from_mut(&mut other));
    end(std::slice::from_mut(&mut owner));
}
