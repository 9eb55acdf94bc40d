//! This test program as a replica, with kinds that misbehave.

use std::process::ExitCode;
use std::time::Duration;

use runner::{Job, JobContext, JobError, Runner};
use serde::Deserialize;
use serde_json::Value;
use testbed::{Deployment, Replica, let_pass, wait_until_blocking};

/// Tells this program to be a replica, and with which arguments.
const AS_RUNNER: &str = "CORRIDOR_RUNNER_ARGS";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MisbehaveParams {
    how: How,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum How {
    Panic,
    FailForGood,
    FailTwice,
    WaitPolitely,
    IgnoreCancellation,
    BlockFor(u64),
    Rant,
}

/// Does what its parameter says.
struct Misbehave(How);

impl Job for Misbehave {
    async fn run(&self, ctx: &JobContext) -> Result<(), JobError> {
        match self.0 {
            How::Panic => panic!("over the edge"),
            How::FailForGood => Err(JobError::fail("the account is closed")),
            How::FailTwice if ctx.attempt() < 3 => Err("the bank is busy")?,
            How::FailTwice => Ok(()),
            How::WaitPolitely => {
                ctx.cancelled().await;
                Err("told to stop")?
            }
            How::IgnoreCancellation => std::future::pending().await,
            How::BlockFor(seconds) => {
                let_pass(Duration::from_secs(seconds));
                Ok(())
            }
            How::Rant => {
                let rant = "on and on ".repeat((3 << 20) / 10) + "the end";
                ctx.set_output(&*rant);
                Err(JobError::fail(rant))
            }
        }
    }
}

#[test]
fn as_a_runner() {
    #[expect(clippy::disallowed_methods, reason = "how the test tells its own program what to be")]
    let Ok(args) = std::env::var(AS_RUNNER) else {
        return;
    };
    let args = std::iter::once("runner").chain(args.split('\n')).map(Into::into);
    let code = Runner::builder()
        .kind("misbehave", |params: MisbehaveParams| Ok(Misbehave(params.how)))
        .main_from(args);
    std::process::exit(if code == ExitCode::SUCCESS { 0 } else { 1 });
}

/// A deployment of this program, embedded, whose job fires every second and misbehaves as told.
pub(crate) fn misbehaving(how: &str, lines: &str) -> Deployment {
    Deployment::new(&std::env::current_exe().unwrap()).ttl("3s").jobs(&format!(
        "[jobs.job]\nkind = \"misbehave\"\nparams = {{ how = {how} }}\nevery = \"1s\"\n{lines}\n"
    ))
}

/// Starts `deployment` with this program, and returns when its ledger is there.
pub(crate) fn start(deployment: &Deployment) -> Replica {
    let replica = with_args(deployment, &[]).spawn();
    wait_until_ready(&replica);
    replica
}

pub(crate) fn wait_until_ready(replica: &Replica) {
    replica.wait_for_line(Duration::from_secs(20), |line| line.contains("ready instance="));
}

/// The rows of `job`, oldest first.
pub(crate) fn rows(deployment: &Deployment) -> Vec<Value> {
    let mut history =
        with_args(deployment, &["history", "job", "--format", "json", "--limit", "1000"]).spawn();
    assert!(history.wait_exit(Duration::from_secs(20)).success(), "{}", history.lines().tail());
    let mut rows: Vec<Value> =
        history.lines().since(0).iter().filter_map(|line| serde_json::from_str(line).ok()).collect();
    rows.sort_by_key(|row: &Value| row["scheduled_at"].to_string());
    rows
}

/// Waits until the oldest row of the job is as `wanted` says.
#[track_caller]
pub(crate) fn wait_for_first(
    deployment: &Deployment,
    deadline: Duration,
    wanted: impl Fn(&Value) -> bool,
) -> Value {
    wait_until_blocking(deadline, || {
        let rows = rows(deployment);
        match rows.first() {
            Some(row) if wanted(row) => Ok(row.clone()),
            row => Err(format!("{row:?}")),
        }
    })
}

pub(crate) fn with_args(deployment: &Deployment, args: &[&str]) -> testbed::ReplicaBuilder {
    let config = deployment.config();
    let mut all = vec!["--config", config.to_str().unwrap()];
    all.extend(args);
    Replica::builder(&std::env::current_exe().unwrap())
        .arg(testbed::test_name!(as_a_runner))
        .arg("--exact")
        .arg("--nocapture")
        .env(AS_RUNNER, all.join("\n"))
        .cwd(deployment.dir())
}
