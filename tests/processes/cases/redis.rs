//! A lock's server that closes connections, is full, asks for a password, forgets, or changes its part.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use chrono::TimeDelta;
use testbed::rows::{number, states};
use testbed::scene::{QUICK, SECOND, START, end, instance, soon, wait_for_row};
use testbed::{Account, EffectKind, PrivateRedis, Scene, let_pass, wait_until_blocking};

use super::said;
use crate::program;

/// How many clients the server has, the one that asks included.
fn clients(redis: &PrivateRedis) -> usize {
    redis.call(&["CLIENT", "LIST"]).unwrap().lines().count()
}

/// The job's lock.
fn lock_key(namespace: &str, job: &str) -> String {
    format!("{{runner:{namespace}/{job}}}:lock")
}

#[test]
fn connections_that_redis_closes_cost_no_firing_and_leak_no_connection() {
    let scene = Scene::new();
    let redis = &scene.cluster.redis;
    // Every firing comes after a pause that is longer than the server's patience.
    redis.call(&["CONFIG", "SET", "timeout", "1"]);
    let deployment = scene.deployment(program()).job("sparse", QUICK, "every = \"2s\"");
    let mut replicas = deployment.start(2);
    replicas.iter().map(instance).for_each(drop);
    let effects = deployment.effects();
    effects.wait_for_starts("sparse", 3, START);
    assert_eq!(said(&replicas, "degraded"), Vec::<String>::new());
    redis.call(&["CONFIG", "SET", "timeout", "0"]);
    let before = effects.instants("sparse").len();
    for _ in 0..80 {
        redis.call(&["CLIENT", "KILL", "TYPE", "normal"]);
        let_pass(Duration::from_millis(40));
    }
    effects.wait_for_starts("sparse", before + 2, START);
    let left = clients(redis);
    end(&mut replicas);
    // Two for each replica, and ourselves.
    assert!(left <= 5, "{left} connections are left of two replicas' two each");
    let account = Account::of(&deployment, "sparse", 2 * SECOND);
    account.assert_all_succeeded_at_once();
    account.assert_on_time(TimeDelta::seconds(1));
}

/// Says these lines to the server on one connection, as somebody with telnet would.
fn tell(address: SocketAddr, lines: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(lines.as_bytes()).unwrap();
    stream.write_all(b"QUIT\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(!answer.contains('-'), "{lines}: {answer}");
}

#[test]
fn whatever_redis_answers_each_firing_has_its_row_and_the_lock_comes_back() {
    let scene = Scene::new();
    let redis = &scene.cluster.redis;
    let deployment = scene.deployment(program()).ttl("2s").job("goes_on", QUICK, "every = \"1s\"").job(
        "waits",
        QUICK,
        "every = \"1s\"\non_unavailable = \"skip\"",
    );
    let mut replicas = deployment.start(2);
    replicas.iter().map(instance).for_each(drop);
    let effects = deployment.effects();
    let locks = ["goes_on", "waits"].map(|job| lock_key(deployment.namespace(), job));
    let full = (
        "OOM",
        &(|| drop(redis.call(&["CONFIG", "SET", "maxmemory", "1"]))) as &dyn Fn(),
        &(|| drop(redis.call(&["CONFIG", "SET", "maxmemory", "0"]))) as &dyn Fn(),
    );
    let closed = (
        "NOAUTH",
        &(|| {
            redis.call(&["CONFIG", "SET", "requirepass", "sesame"]);
            // This connection has come in without one, and is as good as any of the replicas'.
            tell(redis.addr(), "AUTH sesame\r\nCLIENT KILL TYPE normal\r\n");
        }) as &dyn Fn(),
        &(|| tell(redis.addr(), "AUTH sesame\r\nCONFIG SET requirepass \"\"\r\n")) as &dyn Fn(),
    );
    let garbage = (
        "WRONGTYPE",
        &(|| {
            for lock in &locks {
                let plant = "redis.call('DEL', KEYS[1]) redis.call('RPUSH', KEYS[1], 'what is this')";
                redis.call(&["EVAL", plant, "1", lock]);
            }
        }) as &dyn Fn(),
        &(|| drop(redis.call(&["DEL", &locks[0], &locks[1]]))) as &dyn Fn(),
    );
    for (word, plant, heal) in [full, closed, garbage] {
        let before = effects.instants("waits").len();
        effects.wait_for_starts("waits", before + 1, START);
        let mark = replicas[0].lines().mark();
        plant();
        let ran = effects.instants("goes_on").len();
        replicas[0].lines().wait_for(mark, START, |line| line.contains("degraded") && line.contains(word));
        effects.wait_for_starts("goes_on", ran + 2, START);
        heal();
        // Whatever the fault has left in the client is gone: what runs on the lock runs again.
        let before = effects.instants("waits").len();
        effects.wait_for_starts("waits", before + 1, Duration::from_secs(6));
    }
    end(&mut replicas);
    let goes_on = Account::of(&deployment, "goes_on", SECOND);
    goes_on.assert_all_succeeded_at_once();
    let waits = Account::of(&deployment, "waits", SECOND);
    waits.assert_states(&["succeeded", "skipped(lock_unavailable)", "skipped(overlap)", "queued(catch_up)"]);
    waits.assert_one_attempt_each();
    assert!(states(&waits.rows).contains_key("succeeded"), "{:?}", states(&waits.rows));
}

#[test]
fn a_redis_that_comes_back_empty_interrupts_no_run_and_guards_it_again() {
    let scene = Scene::new();
    let redis = &scene.cluster.redis;
    let keys = format!("{}\ntimeout = \"20s\"", soon());
    let deployment = scene.deployment(program()).job("long", Duration::from_secs(9), &keys).job(
        "short",
        Duration::from_millis(400),
        "every = \"1s\"",
    );
    let mut replicas = deployment.start(2);
    let effects = deployment.effects();
    effects.wait_for_starts("long", 1, START);
    redis.restart();
    // Its keys are gone and its scripts as well: the renewal says so, and the lock is free.
    wait_until_blocking(START, || {
        let told = said(&replicas, "the lock is ours again");
        if told.is_empty() { Err("no lock was taken again".to_owned()) } else { Ok(()) }
    });
    // What has been taken again is renewed again: it outlives its ttl of three seconds.
    let key = lock_key(deployment.namespace(), "long");
    let since = testbed::scene::host_now();
    wait_until_blocking(START, || {
        let old = testbed::scene::host_now() - since > TimeDelta::milliseconds(3_500);
        let held = redis.call(&["GET", &key]).is_some();
        assert!(held, "the lock has run out under the run");
        if old { Ok(()) } else { Err("young".to_owned()) }
    });
    let row = wait_for_row(&deployment, "long", "succeeded");
    end(&mut replicas);
    assert_eq!((number(&row, "attempt"), number(&row, "crashes")), (1, 0), "{row}");
    let account = Account::of(&deployment, "long", SECOND);
    assert_eq!(account.of_kind(EffectKind::End).count(), 1);
    // One warning for each lost lock. The short run may have lost its own.
    assert_eq!(
        said(&replicas, "degraded: the lock is gone").iter().filter(|line| line.contains("job=long")).count(),
        1
    );
    assert_eq!(said(&replicas, "lost:"), Vec::<String>::new());
    Account::of(&deployment, "short", SECOND).assert_all_succeeded_at_once();
}

#[test]
fn a_lock_that_was_evicted_interrupts_no_run_and_the_job_does_not_overlap_itself() {
    let scene = Scene::new();
    let redis = &scene.cluster.redis;
    let deployment = scene.deployment(program()).job("long", Duration::from_millis(2_500), "every = \"1s\"");
    let mut replicas = deployment.start(2);
    let effects = deployment.effects();
    effects.wait_for_starts("long", 1, START);
    let key = lock_key(deployment.namespace(), "long");
    // A cache shares the server, and the operator lets the server drop what expires anyway.
    redis.call(&["CONFIG", "SET", "maxmemory-policy", "volatile-random"]);
    let used: u64 = {
        let info = redis.call(&["INFO", "memory"]).unwrap();
        let line = info.lines().find_map(|line| line.strip_prefix("used_memory:")).unwrap();
        line.trim().parse().unwrap()
    };
    let limit = (used + 200_000).to_string();
    redis.call(&["CONFIG", "SET", "maxmemory", &limit]);
    for number in 0..5_000 {
        redis.call(&["SET", &format!("cached-{number}"), &"x".repeat(2_000), "PX", "60000"]);
        if redis.call(&["GET", &key]).is_none() && said(&replicas, "degraded: the lock is gone").len() == 1 {
            break;
        }
    }
    wait_until_blocking(START, || {
        let told = said(&replicas, "degraded: the lock is gone");
        if told.is_empty() { Err("nobody has lost a lock".to_owned()) } else { Ok(()) }
    });
    redis.call(&["CONFIG", "SET", "maxmemory", "0"]);
    let before = effects.instants("long").len();
    effects.wait_for_starts("long", before + 1, START);
    end(&mut replicas);
    let account = Account::of(&deployment, "long", SECOND);
    account.assert_states(&["succeeded", "skipped(overlap)"]);
    account.assert_one_attempt_each();
}
