//! Users' code in this very process: it takes the process down, panics with odd things, keeps threads.

use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Duration;

use chrono::TimeDelta;
use runner::{Job, JobContext, JobError, Runner};
use serde::Deserialize;
use testbed::client::get;
use testbed::rows::{number, state, states};
use testbed::scene::{SECOND, START, host_now, instance, soon};
use testbed::{Cluster, Deployment, PrivateRedis, Replica, ReplicaBuilder, let_pass, wait_until_blocking};

use crate::program;

/// Tells this program to be a replica, and with which file.
const AS_REPLICA: &str = "CASES_REPLICA_CONFIG";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OddParams {
    how: How,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum How {
    Abort,
    PanicWithANumber,
    IndexBeyondTheEnd,
    PanicUnderALock,
    KeepThreads,
    BlockForAMinute,
}

/// Does what its parameter says.
#[derive(Debug)]
struct Odd {
    how: How,
    shared: Mutex<u32>,
}

impl Job for Odd {
    async fn run(&self, _: &JobContext) -> Result<(), JobError> {
        match self.how {
            How::Abort => std::process::abort(),
            How::PanicWithANumber => std::panic::panic_any(42_u32),
            How::IndexBeyondTheEnd => {
                let few = [1, 2, 3].as_slice();
                Err(few[few.len()..][0].to_string())?
            }
            How::PanicUnderALock => {
                let mut shared = self.shared.lock().map_err(|error| error.to_string())?;
                *shared += 1;
                panic!("with the lock in hand, for the {shared}. time");
            }
            How::KeepThreads => {
                let mut blocked = tokio::task::JoinSet::new();
                // More than a runtime has for blocking work.
                for _ in 0..600 {
                    blocked.spawn_blocking(|| let_pass(Duration::from_secs(2)));
                }
                blocked.join_all().await;
                Ok(())
            }
            How::BlockForAMinute => {
                let_pass(Duration::from_secs(60));
                Ok(())
            }
        }
    }
}

/// A job that only has to get its turn.
struct Touch;

impl Job for Touch {
    async fn run(&self, _: &JobContext) -> Result<(), JobError> {
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
        .kind("odd", |params: OddParams| Ok(Odd { how: params.how, shared: Mutex::default() }))
        .kind("touch", |_: toml::Table| Ok(Touch))
        .main_from(["runner".into(), "--config".into(), config.into()]);
    std::process::exit(if code == ExitCode::SUCCESS { 0 } else { 1 });
}

fn replica(deployment: &Deployment) -> ReplicaBuilder {
    Replica::builder(&std::env::current_exe().unwrap())
        .arg(testbed::test_name!(as_a_replica))
        .arg("--exact")
        .arg("--nocapture")
        .env(AS_REPLICA, deployment.config())
        .cwd(deployment.dir())
}

fn odd(name: &str, how: &str, keys: &str) -> String {
    format!("[jobs.{name}]\nkind = \"odd\"\nparams = {{ how = \"{how}\" }}\n{keys}\n")
}

const TOUCH: &str = "[jobs.touch]\nkind = \"touch\"\nparams = {}\nevery = \"1s\"\n";

/// The rows of `job`, as the stock binary reads them: it knows no kind of ours, but needs the file's head
/// only.
fn rows(deployment: &Deployment, job: &str) -> Vec<serde_json::Value> {
    let own = deployment.dir().join("reader.toml");
    let text = std::fs::read_to_string(deployment.config()).unwrap();
    let (head, _) = text.split_once("[jobs.").unwrap();
    std::fs::write(&own, format!("{head}{}", super::command(job, &["true"], "every = \"1h\""))).unwrap();
    let done = std::process::Command::new(program())
        .arg("--config")
        .arg(&own)
        .args(["history", job, "--format", "json", "--limit", "1000"])
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let text = String::from_utf8(done.stdout).unwrap();
    let mut rows: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    rows.sort_by_key(|row| row["scheduled_at"].to_string());
    rows
}

#[test]
fn a_job_that_takes_its_process_down_is_given_up_before_all_replicas_are_gone() {
    let cluster = Cluster::start();
    let deployment = Deployment::new(&std::env::current_exe().unwrap())
        .redis(cluster.redis.url())
        .ledger(cluster.postgres.create_database())
        .ttl("2s")
        .jobs(&odd("poison", "abort", &format!("{}\nmax_crashes = 1", soon())))
        .jobs(TOUCH);
    let mut replicas: Vec<_> = (0..3).map(|_| replica(&deployment).spawn()).collect();
    replicas.iter().map(instance).for_each(drop);
    let row = wait_until_blocking(START, || match rows(&deployment, "poison").pop() {
        Some(row) if state(&row) == "failed(crash_loop)" => Ok(row),
        row => Err(format!("{row:?}")),
    });
    assert_eq!((number(&row, "attempt"), number(&row, "crashes")), (2, 2), "{row}");
    let mut alive: Vec<_> =
        replicas.iter_mut().filter_map(|replica| replica.is_running().then_some(replica)).collect();
    assert_eq!(alive.len(), 1);
    let mark = alive[0].lines().mark();
    for _ in 0..2 {
        alive[0]
            .lines()
            .wait_for(mark, START, |line| line.contains("job=touch") && line.contains("succeeded"));
    }
    alive[0].terminate();
    assert!(alive[0].wait_exit(START).success());
}

#[test]
fn a_panic_with_whatever_in_hand_ends_its_own_firing_only() {
    let redis = PrivateRedis::start();
    let mut deployment = Deployment::new(&std::env::current_exe().unwrap()).redis(redis.url()).jobs(TOUCH);
    for (name, how) in
        [("number", "panic_with_a_number"), ("index", "index_beyond_the_end"), ("lock", "panic_under_a_lock")]
    {
        deployment = deployment.jobs(&odd(name, how, "every = \"1s\""));
    }
    let mut replica = replica(&deployment).spawn();
    instance(&replica);
    wait_until_blocking(START, || {
        let counted = states(&rows(&deployment, "touch"));
        if counted.get("succeeded").is_some_and(|count| *count >= 3) {
            Ok(())
        } else {
            Err(format!("{counted:?}"))
        }
    });
    replica.terminate();
    assert!(replica.wait_exit(START).success(), "{}", replica.lines().tail());
    assert_eq!(redis.call(&["KEYS", "*:lock"]).as_deref(), Some(""), "a run has left its lock behind");
    for (job, said) in
        [("number", "without a message"), ("index", "out of bounds"), ("lock", "with the lock in hand")]
    {
        let first = rows(&deployment, job).remove(0);
        assert_eq!(state(&first), "failed(panicked)", "{first}");
        assert!(first["error"].as_str().unwrap().contains(said), "{first}");
    }
    // What the panic has spoiled is the job's own, and it is told so.
    let later = rows(&deployment, "lock").remove(1);
    assert_eq!(state(&later), "failed(error)", "{later}");
    assert!(later["error"].as_str().unwrap().contains("poisoned"), "{later}");
}

#[test]
fn six_hundred_blocked_threads_of_a_job_hold_up_neither_probes_nor_other_jobs() {
    let deployment = Deployment::new(&std::env::current_exe().unwrap())
        .jobs("[admin]\nlisten = \"127.0.0.1:0\"")
        .jobs(&odd("threads", "keep_threads", &format!("{}\ntimeout = \"30s\"", soon())))
        .jobs(TOUCH);
    let mut replica = replica(&deployment).spawn();
    let line = replica.wait_for_line(START, |line| line.contains("serving /healthz"));
    let address = line.rsplit_once("address=").unwrap().1.trim().parse().unwrap();
    replica.wait_for_line(START, |line| line.contains("job=threads") && line.contains("started"));
    let mut probes = 0;
    let is_over = |line: &String| line.contains("job=threads") && line.contains("succeeded");
    while !replica.lines().since(0).iter().any(is_over) {
        let asked = host_now();
        assert_eq!(get(address, "/healthz").status, 200);
        assert_eq!(get(address, "/readyz").status, 200);
        let took = host_now() - asked;
        assert!(took < TimeDelta::milliseconds(700), "{took} for two probes");
        probes += 1;
        assert!(probes < 1_500, "{}", replica.lines().tail());
        let_pass(Duration::from_millis(20));
    }
    assert!(probes > 50, "{probes}");
    replica.terminate();
    assert!(replica.wait_exit(START).success());
    let touched = rows(&deployment, "touch");
    assert!(touched.iter().all(|row| state(row) == "succeeded"), "{:?}", states(&touched));
    for row in &touched {
        let late = testbed::rows::instant(row, "started_at") - testbed::rows::instant(row, "scheduled_at");
        assert!(late < TimeDelta::from_std(SECOND).unwrap(), "{late}: {row}");
    }
}

#[test]
fn a_job_that_blocks_its_threads_does_not_keep_its_replica_from_leaving() {
    let deployment = Deployment::new(&std::env::current_exe().unwrap())
        .runner("shutdown_grace = \"500ms\"")
        .jobs(&odd("block", "block_for_a_minute", &format!("{}\nkill_grace = \"300ms\"", soon())));
    let mut replica = replica(&deployment).spawn();
    replica.wait_for_line(START, |line| line.contains("job=block") && line.contains("started"));
    let asked = host_now();
    replica.terminate();
    let status = replica.wait_exit(Duration::from_secs(10));
    let took = host_now() - asked;
    assert!(status.success() && took < TimeDelta::seconds(6), "{status:?} after {took}");
    replica.wait_for_line(START, |line| line.contains("leaving runs behind"));
    assert!(!replica.lines().tail().contains("panicked"), "{}", replica.lines().tail());
    // Nobody says that it has ended: its lease has to run out first.
    assert_eq!(state(&rows(&deployment, "block")[0]), "running");
}
