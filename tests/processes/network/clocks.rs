//! Wall clocks that jump while a replica works, and replicas that stand still over several instants.

use std::time::Duration;

use chrono::TimeDelta;
use testbed::rows::instant;
use testbed::scene::{QUICK, SECOND, START, end, host_now, instance};
use testbed::{Account, Scene, let_pass};

use crate::program;

#[test]
fn a_wall_clock_that_jumps_both_ways_neither_doubles_nor_delays_a_firing() {
    let scene = Scene::new();
    let deployment = scene.deployment(program()).job("tick", QUICK, "schedule = \"* * * * * *\"");
    // Alone: what its clock would cost, nobody makes good.
    let mut replica = deployment.replica().faketime("+0s").spawn();
    instance(&replica);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 2, START);
    for offset in ["+1h", "-1h", "+10s", "-10s", "+0s"] {
        replica.set_clock(offset);
        let before = effects.instants("tick").len();
        effects.wait_for_starts("tick", before + 3, START);
    }
    let mut replicas = [replica];
    end(&mut replicas);
    let account = Account::of(&deployment, "tick", SECOND);
    account.assert_all_succeeded_at_once();
    account.assert_on_time(TimeDelta::seconds(1));
}

#[test]
fn replicas_whose_wall_clocks_jump_against_each_other_run_each_firing_once() {
    let scene = Scene::new();
    let deployment = scene.deployment(program()).job("tick", QUICK, "every = \"1s\"");
    let mut replicas: Vec<_> = (0..3).map(|_| deployment.replica().faketime("+0s").spawn()).collect();
    replicas.iter().map(instance).for_each(drop);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 2, START);
    for offsets in [["+1h", "-1h", "+0s"], ["-30s", "+30s", "+1h"], ["+2s", "+1s", "-2s"]] {
        for (replica, offset) in replicas.iter_mut().zip(offsets) {
            replica.set_clock(offset);
        }
        let before = effects.instants("tick").len();
        effects.wait_for_starts("tick", before + 3, START);
    }
    end(&mut replicas);
    let account = Account::of(&deployment, "tick", SECOND);
    account.assert_all_succeeded_at_once();
    account.assert_on_time(TimeDelta::seconds(1));
}

#[test]
fn a_replica_that_stands_still_over_several_instants_leaves_them_to_the_others() {
    let scene = Scene::new();
    let deployment = scene.deployment(program()).ttl("2s").job("tick", QUICK, "every = \"1s\"");
    let mut replicas = deployment.start(3);
    replicas.iter().map(instance).for_each(drop);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 2, START);
    for frozen in [0, 1] {
        replicas[frozen].stop();
        let before = effects.instants("tick").len();
        effects.wait_for_starts("tick", before + 4, START);
        replicas[frozen].cont();
    }
    let before = effects.instants("tick").len();
    effects.wait_for_starts("tick", before + 3, START);
    end(&mut replicas);
    // One that was frozen with a lock in hand, or in the middle of a run, holds the job up until its
    // lease is over and the run has been taken over.
    let account = Account::of(&deployment, "tick", SECOND);
    account.assert_states(&["succeeded", "skipped(overlap)"]);
    account.assert_on_time(TimeDelta::seconds(7));
}

#[test]
fn replicas_that_all_stand_still_decide_once_about_what_fell_due_meanwhile() {
    let scene = Scene::new();
    let deployment = scene.deployment(program()).ttl("2s").job("tick", QUICK, "every = \"1s\"");
    let mut replicas = deployment.start(3);
    replicas.iter().map(instance).for_each(drop);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 2, START);
    for replica in &mut replicas {
        replica.stop();
    }
    let frozen = host_now();
    let_pass(Duration::from_secs(6));
    for replica in &mut replicas {
        replica.cont();
    }
    let woken = host_now();
    let before = effects.instants("tick").len();
    effects.wait_for_starts("tick", before + 6, START);
    end(&mut replicas);
    let account = Account::of(&deployment, "tick", SECOND);
    account.assert_states(&["succeeded", "skipped(overlap)", "skipped(missed)", "queued(owner_lost)"]);
    let meanwhile = |at| at > frozen && at < woken - TimeDelta::seconds(1);
    let due = account.rows.iter().filter(|row| meanwhile(instant(row, "scheduled_at"))).count();
    assert!(due >= 4, "{:#?}", account.rows);
    let ran = account.lateness().into_iter().filter(|(at, _)| meanwhile(*at));
    assert!(ran.into_iter().all(|(at, late)| at + late > frozen), "something ran early");
}
