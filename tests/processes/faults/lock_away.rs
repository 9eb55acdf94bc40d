//! The lock lost, flushed, or unreachable.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use testbed::rows::{assert_no_gap, state, states};
use testbed::{Cluster, let_pass};

use crate::program;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_lock_that_is_flushed_all_the_time_doubles_no_firing_and_lets_no_job_overlap() {
    let cluster = Cluster::start();
    let deployment = cluster
        .deployment(program())
        .ttl("9s")
        .job("quick", Duration::from_millis(50), "every = \"1s\"")
        .job("long", Duration::from_millis(2_500), "every = \"1s\"");
    let replicas = deployment.start(3);
    let enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !enough.load(Ordering::Relaxed) {
                cluster.redis.flushall();
                let_pass(Duration::from_millis(100));
            }
        });
        let_pass(Duration::from_secs(15));
        enough.store(true, Ordering::Relaxed);
    });
    for mut replica in replicas {
        replica.terminate();
        assert!(replica.wait_exit(Duration::from_secs(40)).success());
    }
    let effects = deployment.effects();
    effects.assert_nothing_doubled("quick");
    assert_eq!(effects.overlaps("long"), Vec::<String>::new());
    let quick = deployment.history("quick");
    assert!(quick.len() >= 12, "{:?}", states(&quick));
    assert_no_gap(&quick, SECOND);
    assert_eq!(states(&quick).get("succeeded"), Some(&quick.len()), "{:?}", states(&quick));
}

#[test]
fn a_lock_lost_under_a_run_raises_an_alarm_when_the_ledger_refuses_the_next() {
    let cluster = Cluster::start();
    let deployment =
        cluster.deployment(program()).ttl("9s").job("long", Duration::from_millis(2_500), "every = \"1s\"");
    let replicas = deployment.start(1);
    deployment.effects().wait_for_starts("long", 1, Duration::from_secs(30));
    cluster.redis.flushall();
    replicas[0].wait_for_line(Duration::from_secs(10), |line| line.contains("the ledger refused it"));
    assert_eq!(deployment.effects().overlaps("long"), Vec::<String>::new());
}

#[test]
fn redis_down_for_nine_seconds_neither_misses_nor_doubles_a_ledger_only_firing() {
    let cluster = Cluster::start();
    let deployment =
        cluster.deployment(program()).ttl("3s").job("tick", Duration::from_millis(50), "every = \"1s\"");
    let mut replicas = deployment.start(2);
    deployment.effects().wait_for_starts("tick", 2, Duration::from_secs(30));
    cluster.redis.kill();
    let_pass(Duration::from_secs(3));
    replicas.extend(deployment.start(1));
    let_pass(Duration::from_secs(6));
    cluster.redis.restart();
    let before = deployment.effects().instants("tick").len();
    deployment.effects().wait_for_starts("tick", before + 4, Duration::from_secs(30));
    for mut replica in replicas {
        replica.terminate();
        assert!(replica.wait_exit(Duration::from_secs(30)).success());
    }
    deployment.effects().assert_nothing_doubled("tick");
    let rows = deployment.history("tick");
    assert_no_gap(&rows, SECOND);
    assert_eq!(states(&rows).get("succeeded"), Some(&rows.len()), "{:?}", states(&rows));
}

#[test]
fn a_job_that_needs_the_lock_is_skipped_while_redis_is_down_and_runs_again_later() {
    let cluster = Cluster::start();
    let deployment = cluster.deployment(program()).ttl("2s").job(
        "strict",
        Duration::from_millis(50),
        "every = \"1s\"\non_unavailable = \"skip\"",
    );
    let replicas = deployment.start(2);
    deployment.effects().wait_for_starts("strict", 2, Duration::from_secs(30));
    cluster.redis.kill();
    let_pass(SECOND);
    let started_while_up = deployment.effects().all().len();
    let_pass(Duration::from_secs(8));
    let started_while_down = deployment.effects().all().len();
    cluster.redis.restart();
    let before = deployment.effects().instants("strict").len();
    deployment.effects().wait_for_starts("strict", before + 3, Duration::from_secs(30));
    for mut replica in replicas {
        replica.terminate();
        assert!(replica.wait_exit(Duration::from_secs(30)).success());
    }
    assert_eq!(started_while_down, started_while_up, "something ran without the lock");
    deployment.effects().assert_nothing_doubled("strict");
    let rows = deployment.history("strict");
    assert_no_gap(&rows, SECOND);
    let counted = states(&rows);
    assert!(counted.get("skipped(lock_unavailable)").is_some_and(|count| *count >= 4), "{counted:?}");
    // Firings that waited for Redis come together, and one may find another of the job running.
    let expected = ["succeeded", "skipped(lock_unavailable)", "skipped(overlap)", "queued(catch_up)"];
    assert!(rows.iter().all(|row| expected.contains(&state(row).as_str())), "{counted:?}");
}
