//! The ledger is moved to another cluster, as an upgrade does: its timelines begin anew.

use std::process::{Command, Stdio};

use testbed::scene::{QUICK, SECOND, START, end};
use testbed::{Account, Mode, PrivatePostgres};

use super::stage::{LEGAL, Stage, TIMELINE, assert_fences_grow, assert_told_once, start, starts};

/// Carries a database over, as a dump.
fn carry_over(from: &str, to: &str) {
    let mut dump = Command::new(testbed::postgres::program("pg_dump"))
        .args(["-d", from])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let restored = Command::new(testbed::postgres::program("psql"))
        .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", to])
        .stdin(dump.stdout.take().unwrap())
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(restored.success() && dump.wait().unwrap().success());
}

#[test]
fn a_ledger_moved_to_another_cluster_has_higher_fences_and_every_replica_says_so() {
    let stage = Stage::new();
    // Two timelines have passed when it is moved; the new cluster will begin with its first.
    stage.standby.promote();
    stage.lead_to(&stage.standby);
    let deployment = stage.deployment().job("tick", QUICK, "every = \"1s\"");
    let mut replicas = start(&deployment, 3);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 3, START);
    assert_eq!(starts(&deployment)[0].fence / TIMELINE, 2);
    stage.door.set(Mode::Refuse);
    let next = PrivatePostgres::start_elsewhere();
    next.sql(&format!("CREATE DATABASE {} TEMPLATE template0", stage.name()));
    carry_over(&stage.on(&stage.standby), &stage.on(&next));
    let before = starts(&deployment).len();
    stage.door.set_backend(next.address());
    stage.door.set(Mode::Forward);
    let ticks = effects.instants("tick").len();
    effects.wait_for_starts("tick", ticks + 4, START);
    assert_told_once(&replicas, "the ledger's URL leads to another database cluster");
    end(&mut replicas);
    let account = Account::of(&deployment, "tick", SECOND);
    account.assert_states(&LEGAL);
    assert_fences_grow(&starts(&deployment), before, 3);
}
