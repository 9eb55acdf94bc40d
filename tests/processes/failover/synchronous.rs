//! Every acknowledged commit is on the standby: then a failover is an outage and nothing more.

use std::time::Duration;

use testbed::scene::{QUICK, SECOND, START, end};
use testbed::{Account, Mode, Replica, let_pass};

use super::stage::{ALARM, LEGAL, Stage, assert_fences_grow, assert_told_once, start, starts};

fn lines_with(replicas: &[Replica], what: &str) -> usize {
    replicas.iter().flat_map(|replica| replica.lines().since(0)).filter(|line| line.contains(what)).count()
}

#[test]
fn a_failover_to_a_synchronous_standby_doubles_no_firing_and_loses_none() {
    let stage = Stage::new();
    let deployment = stage.deployment().job("tick", QUICK, "every = \"1s\"").job(
        "work",
        Duration::from_millis(1_200),
        "every = \"2s\"",
    );
    stage.primary.replicate_synchronously();
    let mut replicas = start(&deployment, 3);
    let effects = deployment.effects();
    effects.wait_for_starts("work", 1, START);
    effects.wait_for_starts("tick", 3, START);
    // In the middle of a run, and without a word.
    let runs = effects.instants("work").len();
    effects.wait_for_starts("work", runs + 1, START);
    stage.primary.stop();
    let before = starts(&deployment).len();
    stage.standby.promote();
    stage.lead_to(&stage.standby);
    let ticks = effects.instants("tick").len();
    // Within two leases and a sweep, from the moment on at which there is a primary again.
    effects.wait_for_starts("tick", ticks + 1, Duration::from_secs(10));
    effects.wait_for_starts("tick", ticks + 5, START);
    assert_told_once(&replicas, ALARM);
    end(&mut replicas);
    for (job, period) in [("tick", SECOND), ("work", 2 * SECOND)] {
        let account = Account::of(&deployment, job, period);
        account.assert_states(&LEGAL);
    }
    assert_fences_grow(&starts(&deployment), before, 2);
}

#[test]
fn what_a_synchronous_standby_has_not_received_has_not_begun_to_run() {
    let stage = Stage::new();
    let deployment = stage.deployment().job("tick", QUICK, "every = \"1s\"");
    stage.primary.replicate_synchronously();
    let mut replicas = start(&deployment, 3);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 3, START);
    stage.stream.set(Mode::Stall);
    // What was acknowledged before has begun by now; what is claimed now is written and not acknowledged.
    let_pass(SECOND);
    let before = starts(&deployment).len();
    let_pass(Duration::from_secs(4));
    assert_eq!(starts(&deployment).len(), before, "something ran on a claim that nobody has confirmed");
    assert!(lines_with(&replicas, "claim without an answer") > 0, "no claim was made in vain");
    stage.primary.stop();
    stage.standby.promote();
    stage.lead_to(&stage.standby);
    let ticks = effects.instants("tick").len();
    effects.wait_for_starts("tick", ticks + 5, START);
    assert_told_once(&replicas, ALARM);
    end(&mut replicas);
    let account = Account::of(&deployment, "tick", SECOND);
    account.assert_states(&LEGAL);
    account.assert_one_attempt_each();
    assert_fences_grow(&starts(&deployment), before, 2);
}

#[test]
fn a_standby_that_is_not_promoted_yet_is_an_outage_until_it_is() {
    let stage = Stage::new();
    let deployment = stage.deployment().job("tick", QUICK, "every = \"1s\"");
    stage.primary.replicate_synchronously();
    let mut replicas = start(&deployment, 2);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 2, START);
    // The address is led over too early; it reads well there, the time too.
    stage.lead_to(&stage.standby);
    for replica in &replicas {
        replica.wait_for_line(START, |line| line.contains("no firing contends until it does"));
    }
    let_pass(2 * SECOND);
    let before = starts(&deployment).len();
    stage.standby.promote();
    effects.wait_for_starts("tick", effects.instants("tick").len() + 3, START);
    assert_told_once(&replicas, ALARM);
    for refusal in ["refuses to tell its time", "claim refused"] {
        assert_eq!(lines_with(&replicas, refusal), 0, "that would be a fault of ours: {refusal}");
    }
    end(&mut replicas);
    Account::of(&deployment, "tick", SECOND).assert_states(&LEGAL);
    assert_fences_grow(&starts(&deployment), before, 2);
}
