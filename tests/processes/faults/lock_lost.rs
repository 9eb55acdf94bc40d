//! Redis forgets its locks while runs go on. The ledger still licenses them, so they go on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use testbed::rows::{number, state};
use testbed::scene::{instance, soon};
use testbed::{Account, Cluster, PrivateRedis, Replica, let_pass, wait_until_blocking};

use crate::program;

const SECOND: Duration = Duration::from_secs(1);
/// Longer than anything here takes on a busy machine.
const LONG: Duration = Duration::from_secs(60);

/// Does `work` while Redis loses all its keys once a second.
fn under_flushes(redis: &PrivateRedis, work: impl FnOnce()) {
    let enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !enough.load(Ordering::Relaxed) {
                redis.flushall();
                let_pass(SECOND);
            }
        });
        work();
        enough.store(true, Ordering::Relaxed);
    });
}

/// How long the flushes go on: short, for every run of the tests, unless the script says otherwise.
fn span() -> Duration {
    #[expect(clippy::disallowed_methods, reason = "how the script says how long")]
    let seconds = std::env::var("FLUSH_SECONDS").ok();
    seconds.map_or(Duration::from_secs(20), |seconds| Duration::from_secs(seconds.parse().unwrap()))
}

#[test]
fn a_flush_every_second_interrupts_no_run_and_doubles_and_loses_none() {
    let cluster = Cluster::start();
    let deployment = cluster
        .deployment(program())
        .ttl("2s")
        .job("quick", Duration::from_millis(50), "every = \"1s\"")
        .job("long", Duration::from_millis(4_500), "every = \"6s\"\ntimeout = \"30s\"");
    let mut replicas = deployment.start(3);
    deployment.effects().wait_for_starts("long", 1, LONG);
    under_flushes(&cluster.redis, || let_pass(span()));
    for replica in &mut replicas {
        replica.terminate();
    }
    for replica in &mut replicas {
        assert!(replica.wait_exit(LONG).success());
    }
    Account::of(&deployment, "quick", SECOND).assert_all_succeeded_at_once();
    Account::of(&deployment, "long", Duration::from_secs(6)).assert_all_succeeded_at_once();
    let lines: Vec<_> = replicas.iter().flat_map(|replica| replica.lines().since(0)).collect();
    let told = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert!(told("degraded: the lock is gone") >= 3, "no run met a flush");
    assert!(told("the lock is ours again") >= 3, "no lock was taken again");
    assert_eq!((told("lost:"), told("interrupted")), (0, 0));
    println!(
        "flushes: {} runs, 0 doubled, 0 missing, 0 interrupted; {} times a lock was lost, {} times taken again",
        deployment.history("quick").len() + deployment.history("long").len(),
        told("degraded: the lock is gone"),
        told("the lock is ours again"),
    );
}

#[test]
fn a_kill_a_freeze_and_then_flushes_end_no_long_job_as_a_crash_loop() {
    let cluster = Cluster::start();
    let work = Duration::from_secs(12);
    let deployment =
        cluster.deployment(program()).ttl("2s").job("long", work, &format!("{}\ntimeout = \"60s\"", soon()));
    let mut replicas: Vec<(String, Replica)> =
        deployment.start(3).into_iter().map(|replica| (instance(&replica), replica)).collect();
    let mut take_owner = |attempt: u32| {
        wait_until_blocking(LONG, || {
            let effects = deployment.effects().all();
            let begun = effects.iter().any(|effect| effect.attempt == attempt);
            if begun { Ok(()) } else { Err(format!("attempt {attempt} has not begun: {effects:?}")) }
        });
        let row = deployment.history("long").pop().unwrap();
        let owner = row["owner"].as_str().unwrap();
        let at = replicas.iter().position(|(name, _)| *name == owner).unwrap();
        replicas.remove(at).1
    };
    take_owner(1).kill9();
    let mut frozen = take_owner(2);
    frozen.stop();
    let survivor = take_owner(3);
    under_flushes(&cluster.redis, || let_pass(Duration::from_secs(8)));
    let row = wait_until_blocking(LONG, || {
        let row = deployment.history("long").pop().unwrap();
        if state(&row) == "running" { Err(row.to_string()) } else { Ok(row) }
    });
    assert_eq!((state(&row).as_str(), number(&row, "attempt")), ("succeeded", 3), "{row}");
    assert_eq!(number(&row, "crashes"), 2, "a lost lock counted as a crash: {row}");
    assert_eq!(deployment.effects().overlaps("long"), Vec::<String>::new());
    drop((frozen, survivor));
}
