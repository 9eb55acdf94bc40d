//! Users' code that blocks every thread it can get.

use std::process::ExitCode;
use std::time::Duration;

use runner::{Job, JobContext, JobError, Runner};
use serde::Deserialize;
use testbed::{Cluster, Deployment, PrivatePostgres, Replica};

/// Tells this test program to be a replica with kinds of its own.
const AS_REPLICA: &str = "BLOCKING_REPLICA_CONFIG";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockParams {
    seconds: u64,
}

/// Blocks every thread of the runtime it runs on, at once and without ever yielding.
struct Block(BlockParams);

impl Job for Block {
    async fn run(&self, _: &JobContext) -> Result<(), JobError> {
        let span = Duration::from_secs(self.0.seconds);
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 1..tokio::runtime::Handle::current().metrics().num_workers() {
            tasks.spawn(async move { testbed::let_pass(span) });
        }
        // The other threads have to take their tasks over before this one blocks.
        tokio::task::yield_now().await;
        testbed::let_pass(span);
        tasks.join_all().await;
        Ok(())
    }
}

#[test]
fn as_a_replica() {
    #[expect(clippy::disallowed_methods, reason = "how the test tells its own program what to be")]
    let Ok(config) = std::env::var(AS_REPLICA) else {
        return;
    };
    let code = Runner::builder()
        .kind("block", |params: BlockParams| Ok(Block(params)))
        .kind("thread", |_: toml::Table| Ok(Thread))
        .kind("touch", |_: toml::Table| Ok(Touch))
        .main_from(["runner".into(), "--config".into(), config.into()]);
    std::process::exit(if code == ExitCode::SUCCESS { 0 } else { 1 });
}

fn replica(deployment: &Deployment) -> Replica {
    let config = deployment.config();
    Replica::builder(&std::env::current_exe().unwrap())
        .arg(testbed::test_name!(as_a_replica))
        .arg("--exact")
        .arg("--nocapture")
        .env(AS_REPLICA, config)
        .cwd(deployment.dir())
        .spawn()
}

/// Blocks a thread of its own for much longer than its timeout, and leaves a line when it begins and when it ends.
struct Thread;

impl Job for Thread {
    async fn run(&self, ctx: &JobContext) -> Result<(), JobError> {
        let fence = ctx.fence();
        ctx.spawn_blocking(move || {
            println!("thread {fence} begins");
            testbed::let_pass(Duration::from_secs(5));
            println!("thread {fence} ends");
        })
        .await;
        Ok(())
    }
}

#[test]
fn a_run_has_not_ended_while_a_thread_of_it_works_on_after_its_timeout() {
    let database = PrivatePostgres::shared().create_database();
    let deployment = Deployment::new(&std::env::current_exe().unwrap()).ledger(database.clone()).jobs(
        "[jobs.work]\nkind = \"thread\"\nparams = {}\nevery = \"4s\"\ntimeout = \"1s\"\nmax_attempts = 1",
    );
    let mut replica = replica(&deployment);
    let ended = |number: usize| {
        testbed::wait_until_blocking(Duration::from_secs(60), || {
            let lines: Vec<_> =
                replica.lines().since(0).into_iter().filter(|line| line.starts_with("thread ")).collect();
            let ended = lines.iter().filter(|line| line.ends_with("ends")).count();
            if ended >= number { Ok(lines) } else { Err(format!("{lines:?}")) }
        })
    };
    let lines = ended(2);
    replica.terminate();
    assert!(replica.wait_exit(Duration::from_secs(60)).success());
    for pair in lines.chunks_exact(2) {
        let fence = pair[0].trim_end_matches(" begins");
        assert_eq!(pair[1], format!("{fence} ends"), "two threads at once: {lines:?}");
    }
    let ended = |also: &str| {
        let sql = format!(
            "SELECT count(*) FROM runner_firings WHERE state = 'failed' AND reason = 'timeout' {also}"
        );
        PrivatePostgres::sql_at(&database, &sql)
    };
    // Recorded once its thread had ended, five seconds after it began.
    let all = ended("");
    assert!(all != "0" && all != "1", "{all}");
    assert_eq!(ended("AND finished_at - started_at >= interval '4900 milliseconds'"), all);
}

/// A Rust job of another kind, which only has to get its turn.
struct Touch;

impl Job for Touch {
    async fn run(&self, _: &JobContext) -> Result<(), JobError> {
        Ok(())
    }
}

/// The job blocks every thread of its runtime for more than three times its lease: only renewals and
/// heartbeats from elsewhere can keep it.
#[test]
fn a_job_that_blocks_every_thread_loses_no_lease_and_delays_no_other_kind() {
    let cluster = Cluster::start();
    let database = cluster.postgres.create_database();
    let deployment = Deployment::new(&std::env::current_exe().unwrap())
        .redis(cluster.redis.url())
        .ledger(database.clone())
        .ttl("3s")
        .jobs(
            r#"
            [jobs.block]
            kind = "block"
            params = { seconds = 10 }
            every = "2m"
            timeout = "60s"

            [jobs.touch]
            kind = "touch"
            every = "1s"
            "#,
        );
    let mut replica = replica(&deployment);
    let of_the_run = |line: &str| line.contains("job=block");
    replica.wait_for_line(Duration::from_secs(130), |line| of_the_run(line) && line.contains("started"));
    let mark = replica.lines().mark();
    let end = replica.lines().wait_for(mark, Duration::from_secs(30), |line| of_the_run(line));
    assert!(end.contains("succeeded") && end.contains("attempt=1"), "{end}");
    let meanwhile = replica.lines().since(mark);
    let touched =
        meanwhile.iter().filter(|line| line.contains("job=touch") && line.contains("succeeded")).count();
    assert!(touched >= 9, "{touched} of about ten other firings: {meanwhile:#?}");
    let rows = PrivatePostgres::sql_at(
        &database,
        "SELECT count(*) FROM runner_firings WHERE job = 'touch' AND started_at - scheduled_at > interval '1 second'",
    );
    assert_eq!(rows.trim(), "0", "firings of another kind were claimed late");
    replica.terminate();
    assert!(replica.wait_exit(Duration::from_secs(15)).success());
}
