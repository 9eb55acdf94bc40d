//! Owners killed and frozen at random, the lock flushed all the time.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use testbed::rows::assert_no_gap;
use testbed::{Cluster, Deployment, Replica, let_pass};

use super::table::{
    TABLE, assert_one_effect_each, counting, effects, effects_in_file, end, on, wait_until_all_ended,
};
use crate::program;

/// Longer than a start takes on a busy machine.
const START: Duration = Duration::from_secs(30);

/// The seeds of the standard library's hashers are random enough.
fn dice() -> u8 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish().to_le_bytes()[0]
}

/// Kills or freezes one of them, now and then, and starts another in its place.
fn disturb(deployment: &Deployment, replicas: &mut [Replica], rounds: usize) {
    for _ in 0..rounds {
        let_pass(Duration::from_millis(300 + 5 * u64::from(dice())));
        let victim = &mut replicas[usize::from(dice() % 2)];
        if dice() < 128 {
            victim.kill9();
            *victim = deployment.replica().spawn();
            victim.wait_for_line(START, |line| line.contains("ready"));
        } else {
            // Shorter and longer than the lease of two seconds.
            victim.stop();
            let_pass(Duration::from_millis(500 + 14 * u64::from(dice())));
            victim.cont();
        }
    }
}

#[test]
fn each_firing_leaves_one_effect_while_owners_die_and_the_lock_is_flushed() {
    let cluster = Cluster::start();
    let (deployment, database) = on(&cluster);
    let keys = "overlap = \"allow\"\nmax_crashes = 1000\nmax_attempts = 1000\ntimeout = \"10s\"\n\
                backoff = { initial = \"100ms\", max = \"1s\" }";
    let deployment = deployment
        .ttl("2s")
        .jobs(&format!("[jobs.quick]\nevery = \"1s\"\n{keys}\n{}", counting("")))
        .jobs(&format!("[jobs.slow]\nevery = \"1s\"\n{keys}\n{}", counting("SELECT pg_sleep(0.7);")));
    let mut replicas = deployment.start(3);
    for replica in &replicas {
        replica.wait_for_line(START, |line| line.contains("ready"));
    }
    let enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !enough.load(Ordering::Relaxed) {
                cluster.redis.flushall();
                let_pass(Duration::from_millis(50));
            }
        });
        disturb(&deployment, &mut replicas, 18);
        enough.store(true, Ordering::Relaxed);
    });
    // The others have long since been told to go when the last one ends what is left.
    end(&mut replicas[..2]);
    let_pass(Duration::from_secs(6));
    end(&mut replicas[2..]);
    for job in ["quick", "slow"] {
        wait_until_all_ended(&deployment, job);
        let effects = effects(&database, job);
        assert!(effects.len() >= 25, "{job}: {} firings", effects.len());
        assert_one_effect_each(&deployment, job, &effects);
        assert_no_gap(&deployment.history(job), Duration::from_secs(1));
    }
    // And it was a storm.
    let retried = testbed::PrivatePostgres::sql_at(&database, "SELECT count(*) FROM runner_attempts");
    assert_ne!(retried, "0", "no owner was ever lost in the middle of a run");
}

#[test]
fn two_processes_on_one_file_leave_one_effect_for_each_firing_under_kills() {
    let keys = "overlap = \"allow\"\nmax_crashes = 1000\nmax_attempts = 1000\ntimeout = \"10s\"";
    let table = TABLE.replace("CREATE TABLE", "CREATE TABLE IF NOT EXISTS");
    let job = format!("{table};\n");
    let statement = counting("").replacen("INSERT", &format!("{job}INSERT"), 1);
    let deployment = Deployment::new(program())
        .ttl("2s")
        .jobs(&format!("[jobs.quick]\nevery = \"1s\"\n{keys}\n{statement}"))
        .jobs(&format!("[jobs.other]\nevery = \"1s\"\n{keys}\n{statement}"));
    let mut replicas = deployment.start(2);
    for replica in &replicas {
        replica.wait_for_line(START, |line| line.contains("ready"));
    }
    disturb(&deployment, &mut replicas, 8);
    let_pass(Duration::from_secs(6));
    end(&mut replicas);
    for job in ["quick", "other"] {
        wait_until_all_ended(&deployment, job);
        let effects = effects_in_file(&deployment.dir().join("runner.db"), job);
        assert!(effects.len() >= 10, "{job}: {} firings", effects.len());
        assert_one_effect_each(&deployment, job, &effects);
        assert_no_gap(&deployment.history(job), Duration::from_secs(1));
    }
}
