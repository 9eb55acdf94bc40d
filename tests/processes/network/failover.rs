//! Redis fails over to a replica that lags: locks that were held are gone, and nobody has said so.

use std::time::Duration;

use testbed::rows::states;
use testbed::scene::{QUICK, SECOND, START, end};
use testbed::{Account, Mode, PrivateRedis, Proxy, Scene, let_pass, wait_until_blocking};

use crate::program;

/// Waits until clients have left a key on `redis`: they use it.
#[track_caller]
fn wait_for_keys(redis: &PrivateRedis) {
    wait_until_blocking(Duration::from_secs(10), || match redis.call(&["DBSIZE"]).as_deref() {
        Some("0") | None => Err("no key on the new primary".into()),
        Some(_) => Ok(()),
    });
}

#[test]
fn a_failover_to_a_replica_that_lags_doubles_nothing_and_lets_no_job_overlap_itself() {
    let scene = Scene::new();
    let wire = scene.wire();
    let standby = PrivateRedis::start();
    let deployment = scene.deployment(program()).job("tick", QUICK, "every = \"1s\"").job(
        "long",
        Duration::from_millis(2_500),
        "every = \"1s\"",
    );
    let mut replicas = wire.start(&deployment, 3);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 2, START);
    let mut servers = [&scene.cluster.redis, &standby];
    for _ in 0..3 {
        let [primary, successor] = servers;
        let link = Proxy::new(primary.addr());
        successor.follow(link.address());
        // From here on the successor learns of no lock. The long job takes one, and holds it.
        link.set(Mode::Stall);
        let runs = effects.instants("long").len();
        effects.wait_for_starts("long", runs + 1, START);
        successor.promote();
        wire.redis.set_backend(successor.addr());
        wire.redis.cut();
        wait_for_keys(successor);
        let before = effects.instants("tick").len();
        effects.wait_for_starts("tick", before + 1, START);
        servers = [successor, primary];
    }
    let before = effects.instants("tick").len();
    effects.wait_for_starts("tick", before + 2, START);
    end(&mut replicas);
    let tick = Account::of(&deployment, "tick", SECOND);
    tick.assert_states(&["succeeded", "skipped(overlap)"]);
    tick.assert_one_attempt_each();
    // Runs whose lock was lost go on under their lease in the ledger.
    let long = Account::of(&deployment, "long", SECOND);
    long.assert_states(&["succeeded", "skipped(overlap)"]);
    long.assert_one_attempt_each();
    let lines: Vec<_> = replicas.iter().flat_map(|replica| replica.lines().since(0)).collect();
    let lost =
        lines.iter().filter(|line| line.contains("degraded: the lock is gone or someone else's")).count();
    assert!(lost > 0, "no run has lost its lock: {:?}", states(&long.rows));
}

#[test]
fn a_primary_that_was_demoted_under_its_clients_is_left_for_the_new_one() {
    let scene = Scene::new();
    let wire = scene.wire();
    let successor = PrivateRedis::start();
    let deployment = scene.deployment(program()).job("tick", QUICK, "every = \"1s\"");
    let mut replicas = wire.start(&deployment, 3);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 2, START);
    // Connections stay open, and lead to a server that takes no writes any more.
    wire.redis.set_backend(successor.addr());
    let opened = wire.redis.connections();
    scene.cluster.redis.follow(successor.addr());
    wait_for_keys(&successor);
    assert!(wire.redis.connections() > opened);
    let before = effects.instants("tick").len();
    let settled: Vec<_> = replicas.iter().map(|replica| replica.lines().mark()).collect();
    effects.wait_for_starts("tick", before + 3, START);
    let_pass(Duration::from_millis(500));
    end(&mut replicas);
    let account = Account::of(&deployment, "tick", SECOND);
    account.assert_all_succeeded_at_once();
    account.assert_on_time(chrono::TimeDelta::seconds(2));
    // Each replica found the new primary at its first or second try.
    for (replica, mark) in replicas.iter().zip(settled) {
        let late: Vec<_> =
            replica.lines().since(mark).into_iter().filter(|line| line.contains("degraded")).collect();
        assert!(late.len() <= 1, "{late:#?}");
    }
}
