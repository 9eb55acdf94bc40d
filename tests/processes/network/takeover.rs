//! Unknown outcomes where a run changes hands: the sweep, the claim of a queued row, the requeue.

use std::time::Duration;

use testbed::rows::number;
use testbed::scene::{
    QUICK, SECOND, START, end, instance, owner, soon, statement, wait_for_catch, wait_for_row,
};
use testbed::{Account, Bait, EffectKind, Scene, Snap, wait_until_blocking};

use crate::program;

/// The owner of a run is killed in its middle and the trap waits for those who take over: one
/// crash, one further attempt, one row in the history, whatever was lost.
fn take_over(bait: Bait, snap: Snap) {
    let scene = Scene::new();
    let wire = scene.wire();
    let keys = format!("{}\ntimeout = \"10s\"", soon());
    let deployment = scene.deployment(program()).ttl("2s").job("pay", Duration::from_millis(2_500), &keys);
    let mut replicas = wire.start(&deployment, 3);
    wait_until_blocking(START, || {
        if deployment.effects().all().is_empty() { Err("not started".into()) } else { Ok(()) }
    });
    let mut dead = replicas.swap_remove(owner(&replicas));
    wire.postgres.trap(bait, snap, 1);
    dead.kill9();
    wait_for_catch(&wire.postgres, 1);
    let row = wait_for_row(&deployment, "pay", "succeeded");
    end(&mut replicas);
    assert_eq!((number(&row, "attempt"), number(&row, "crashes")), (2, 1), "{row}");
    let earlier = scene.ask("SELECT string_agg(attempt || ' ' || reason, ', ') FROM runner_attempts");
    assert_eq!(earlier, "1 owner_lost");
    let account = Account::of(&deployment, "pay", SECOND);
    assert_eq!(account.of_kind(EffectKind::Start).count(), 2);
    assert_eq!(account.of_kind(EffectKind::End).count(), 1);
}

#[test]
fn a_sweep_whose_reply_is_lost_has_swept_once() {
    take_over(statement("sweep"), Snap::SwallowReply);
}

#[test]
fn a_sweep_that_never_arrives_is_made_again() {
    take_over(statement("sweep"), Snap::SwallowRequest);
}

#[test]
fn a_sweep_that_arrives_late_finds_the_run_with_its_next_owner() {
    take_over(statement("sweep"), Snap::Postpone(Duration::from_secs(2)));
}

#[test]
fn a_claim_of_a_queued_row_whose_reply_is_lost_is_confirmed() {
    take_over(statement("claim_queued"), Snap::SwallowReply);
}

#[test]
fn a_claim_of_a_queued_row_that_never_arrives_is_made_again() {
    take_over(statement("claim_queued"), Snap::SwallowRequest);
}

#[test]
fn a_claim_of_a_queued_row_that_arrives_late_finds_it_taken() {
    take_over(statement("claim_queued"), Snap::Postpone(Duration::from_millis(1_500)));
}

/// A first attempt that fails, and whose way back into the queue is disturbed: the second attempt
/// runs once and is settled.
fn retry(snap: Snap) {
    let scene = Scene::new();
    let wire = scene.wire();
    let deployment = scene.deployment(program());
    let argv = deployment.effects().argv(QUICK);
    let flaky = ["/bin/sh", "-c", "\"$@\" && [ \"$RUNNER_ATTEMPT\" -gt 1 ]", "flaky"];
    let argv: Vec<_> = flaky.into_iter().chain(argv.iter().map(String::as_str)).collect();
    let deployment = deployment.jobs(&format!(
        "[jobs.flaky]\nkind = \"command\"\nmax_attempts = 2\nbackoff = {{ initial = \"100ms\" }}\n{}\nparams = {{ argv = {} }}",
        soon(),
        serde_json::to_string(&argv).unwrap(),
    ));
    wire.postgres.trap(statement("settle_requeue"), snap, 1);
    let mut replicas = wire.start(&deployment, 2);
    replicas.iter().map(instance).for_each(drop);
    wait_for_catch(&wire.postgres, 1);
    let row = wait_for_row(&deployment, "flaky", "succeeded");
    end(&mut replicas);
    assert_eq!((number(&row, "attempt"), number(&row, "crashes")), (2, 0), "{row}");
    let earlier = scene.ask("SELECT string_agg(attempt || ' ' || reason, ', ') FROM runner_attempts");
    assert_eq!(earlier, "1 retry");
    let account = Account::of(&deployment, "flaky", SECOND);
    assert_eq!(account.of_kind(EffectKind::Start).count(), 2);
    let void = |line: &String| line.contains("its result is void");
    assert!(!replicas.iter().flat_map(|replica| replica.lines().since(0)).any(|line| void(&line)));
}

#[test]
fn a_requeue_whose_reply_is_lost_is_found_though_the_next_attempt_may_have_begun() {
    retry(Snap::SwallowReply);
}

#[test]
fn a_requeue_that_never_arrives_is_made_again() {
    retry(Snap::SwallowRequest);
}

#[test]
fn a_requeue_that_arrives_late_does_not_take_the_next_attempt_back() {
    retry(Snap::Postpone(Duration::from_millis(2_500)));
}
