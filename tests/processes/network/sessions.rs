//! PostgreSQL frozen, its sessions killed, the server restarted under its clients.

use std::time::Duration;

use chrono::TimeDelta;
use testbed::rows::{instant, states};
use testbed::scene::{QUICK, SECOND, START, end, host_now, instance};
use testbed::{Account, Scene, let_pass};

use crate::program;

#[test]
fn a_server_that_hangs_for_some_seconds_costs_no_firing_and_doubles_none() {
    let scene = Scene::new();
    let wire = scene.wire();
    let deployment = scene.deployment(program()).job("tick", QUICK, "every = \"1s\"").job(
        "work",
        Duration::from_millis(700),
        "every = \"1s\"",
    );
    let mut replicas = wire.start(&deployment, 3);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 2, START);
    scene.cluster.postgres.pause();
    let frozen = host_now();
    let_pass(Duration::from_secs(4));
    scene.cluster.postgres.resume();
    let thawed = host_now();
    replicas[0].wait_for_line(SECOND, |line| line.contains("no firing contends until it does"));
    let before = effects.instants("tick").len();
    effects.wait_for_starts("tick", before + 8, START);
    end(&mut replicas);
    for job in ["tick", "work"] {
        let account = Account::of(&deployment, job, SECOND);
        account.assert_states(&[
            "succeeded",
            "skipped(overlap)",
            "queued(owner_lost)",
            "queued(interrupted)",
        ]);
        // Nothing was claimed while nobody could answer.
        let in_between = |at| at > frozen + TimeDelta::milliseconds(500) && at < thawed;
        let claimed = account.rows.iter().filter(|row| row["started_at"].is_string());
        let claimed: Vec<_> = claimed.filter(|row| in_between(instant(row, "started_at"))).collect();
        assert!(claimed.is_empty(), "{claimed:#?}");
        let due_meanwhile =
            account.rows.iter().filter(|row| in_between(instant(row, "scheduled_at"))).count();
        assert!(due_meanwhile >= 2, "the freeze has met no firing: {:?}", states(&account.rows));
    }
}

#[test]
fn sessions_that_are_killed_every_moment_cost_no_firing_and_double_none() {
    let scene = Scene::new();
    let wire = scene.wire();
    let deployment = scene.deployment(program()).job("tick", QUICK, "every = \"1s\"").job(
        "work",
        Duration::from_millis(1_500),
        "every = \"2s\"",
    );
    let mut replicas = wire.start(&deployment, 3);
    replicas.iter().map(instance).for_each(drop);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 2, START);
    let began = host_now();
    let mut killed = 0;
    while host_now() < began + TimeDelta::seconds(10) {
        killed += scene.cluster.postgres.end_sessions();
        let_pass(Duration::from_millis(200));
    }
    assert!(killed >= 50, "only {killed} sessions were there to be killed");
    let before = effects.instants("tick").len();
    effects.wait_for_starts("tick", before + 4, START);
    end(&mut replicas);
    for (job, period) in [("tick", SECOND), ("work", 2 * SECOND)] {
        let account = Account::of(&deployment, job, period);
        account.assert_states(&["succeeded", "skipped(overlap)"]);
        let succeeded = account.rows.iter().filter(|row| row["state"] == "succeeded").count();
        assert!(succeeded * 2 > account.rows.len(), "{:?}", states(&account.rows));
    }
}

#[test]
fn a_server_that_is_restarted_in_the_middle_of_a_run_finds_the_run_alive() {
    let scene = Scene::new();
    let wire = scene.wire();
    let deployment = scene.deployment(program()).job("tick", QUICK, "every = \"1s\"").job(
        "long",
        Duration::from_secs(3),
        "every = \"4s\"",
    );
    let mut replicas = wire.start(&deployment, 3);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 2, START);
    for _ in 0..2 {
        let runs = effects.instants("long").len();
        effects.wait_for_starts("long", runs + 1, START);
        scene.cluster.postgres.shut_down();
        scene.cluster.postgres.start_again();
    }
    let before = effects.instants("tick").len();
    effects.wait_for_starts("tick", before + 5, START);
    end(&mut replicas);
    let long = Account::of(&deployment, "long", 4 * SECOND);
    long.assert_states(&["succeeded"]);
    long.assert_one_attempt_each();
    let tick = Account::of(&deployment, "tick", SECOND);
    tick.assert_states(&["succeeded", "skipped(overlap)"]);
}
