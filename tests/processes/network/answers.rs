//! Answers that are lost, requests that never arrive, and requests that arrive when nobody waits any
//! more, for every operation of the corridor.

use std::time::Duration;

use chrono::TimeDelta;
use testbed::rows::instant;
use testbed::scene::{QUICK, SECOND, START, end, statement, wait_for_catch};
use testbed::{Account, Bait, Proxy, Scene, Snap, Wire};

use crate::program;

/// How often each trap is sprung.
const ROUNDS: usize = 2;
/// A run in which a lease is renewed twice.
const LONG: Duration = Duration::from_millis(2_500);
/// The job's lease, after which a sweep would have to clear up.
const TTL: Duration = Duration::from_secs(3);

/// Two replicas behind one wire, a job that fires each second, and a trap that is set twice.
/// Whatever it caught, every firing ran at its first attempt, none was missed or doubled, and each
/// started within `limit` of its instant. Only where that is so late that the next one may be due
/// already, that next one may have been skipped because the late one ran.
fn spring(
    work: Duration,
    bait: impl Fn(&Scene) -> Bait,
    snap: Snap,
    side: fn(&Wire) -> &Proxy,
    limit: TimeDelta,
) -> (Account, Vec<String>) {
    let scene = Scene::new();
    let wire = scene.wire();
    let period = if work > SECOND { 4 * SECOND } else { SECOND };
    let keys = format!("every = \"{}s\"", period.as_secs());
    let deployment = scene.deployment(program()).ttl("3s").job("tick", work, &keys);
    let mut replicas = wire.start(&deployment, 2);
    deployment.effects().wait_for_starts("tick", 2, START);
    for round in 1..=ROUNDS {
        let before = deployment.effects().instants("tick").len();
        side(&wire).trap(bait(&scene), snap, 1);
        wait_for_catch(side(&wire), round);
        // Two firings later the operation that was caught has come to its end.
        let apart = if work > SECOND { 1 } else { 3 };
        deployment.effects().wait_for_starts("tick", before + apart, START);
    }
    let before = deployment.effects().instants("tick").len();
    deployment.effects().wait_for_starts("tick", before + 2, START);
    end(&mut replicas);
    assert_eq!(side(&wire).swallowed(), ROUNDS);
    let account = Account::of(&deployment, "tick", period);
    account.assert_on_time(limit);
    if limit > TimeDelta::seconds(1) && work < SECOND {
        account.assert_states(&["succeeded", "skipped(overlap)"]);
        let skipped = account.rows.iter().filter(|row| row["state"] == "skipped").count();
        assert!(skipped <= ROUNDS * TTL.as_secs() as usize, "{skipped} were skipped");
    } else {
        account.assert_states(&["succeeded"]);
    }
    account.assert_one_attempt_each();
    // Resolved by asking again, not by waiting for the lease to run out.
    for row in account.rows.iter().filter(|row| row["state"] == "succeeded") {
        let took = instant(row, "finished_at") - instant(row, "started_at");
        assert!(took < TimeDelta::from_std(work + TTL).unwrap(), "{took}: {row}");
    }
    let lines = replicas.iter().flat_map(|replica| replica.lines().since(0)).collect();
    (account, lines)
}

/// No replica has said any of this.
#[track_caller]
fn assert_unsaid(lines: &[String], words: &[&str]) {
    let said: Vec<_> = lines.iter().filter(|line| words.iter().any(|word| line.contains(word))).collect();
    assert!(said.is_empty(), "{said:#?}");
}

/// Someone has said this: the fault was felt where it was meant to be.
#[track_caller]
fn assert_said(lines: &[String], word: &str) {
    assert!(lines.iter().any(|line| line.contains(word)), "nobody has said {word:?}");
}

fn redis(wire: &Wire) -> &Proxy {
    &wire.redis
}

fn postgres(wire: &Wire) -> &Proxy {
    &wire.postgres
}

fn acquire(scene: &Scene) -> Bait {
    scene.script(include_str!("../../../crates/lockcore/src/lua/acquire.lua"))
}

fn renew(scene: &Scene) -> Bait {
    scene.script(include_str!("../../../crates/lockcore/src/lua/renew.lua"))
}

fn release(scene: &Scene) -> Bait {
    scene.script(include_str!("../../../crates/lockcore/src/lua/release.lua"))
}

#[test]
fn an_acquisition_whose_reply_is_lost_is_found_by_its_token() {
    let (_, lines) = spring(QUICK, acquire, Snap::SwallowReply, redis, TimeDelta::seconds(1));
    assert_unsaid(&lines, &["degraded", "no longer ours"]);
}

#[test]
fn an_acquisition_that_never_arrives_is_made_again() {
    let (_, lines) = spring(QUICK, acquire, Snap::SwallowRequest, redis, TimeDelta::seconds(2));
    assert_unsaid(&lines, &["degraded", "no longer ours"]);
}

#[test]
fn an_acquisition_that_arrives_late_holds_the_next_firings_up_for_one_ttl_at_most() {
    let late = Snap::Postpone(Duration::from_millis(1_500));
    // The late token takes a lock that nobody knows of, and that runs out by itself.
    spring(QUICK, acquire, late, redis, TimeDelta::from_std(TTL + SECOND).unwrap());
}

fn lose_renewals(snap: Snap) {
    let (account, lines) = spring(LONG, renew, snap, redis, TimeDelta::seconds(2));
    assert!(account.rows.len() >= 3);
    assert_unsaid(&lines, &["lost:", "degraded"]);
}

#[test]
fn a_renewal_whose_reply_is_lost_is_made_again_and_the_run_goes_on() {
    lose_renewals(Snap::SwallowReply);
}

#[test]
fn a_renewal_that_never_arrives_is_made_again_and_the_run_goes_on() {
    lose_renewals(Snap::SwallowRequest);
}

#[test]
fn a_release_whose_reply_is_lost_is_made_again_and_is_no_mismatch() {
    let (_, lines) = spring(QUICK, release, Snap::SwallowReply, redis, TimeDelta::seconds(1));
    assert_unsaid(&lines, &["no longer ours", "could not release"]);
}

#[test]
fn a_release_that_never_arrives_is_made_again() {
    let (_, lines) = spring(QUICK, release, Snap::SwallowRequest, redis, TimeDelta::seconds(2));
    assert_unsaid(&lines, &["no longer ours", "could not release"]);
}

#[test]
fn a_release_that_arrives_late_deletes_nobody_elses_lock() {
    let late = Snap::Postpone(Duration::from_millis(1_500));
    let (_, lines) = spring(Duration::from_millis(400), release, late, redis, TimeDelta::seconds(2));
    // A holder whose lock was deleted by the late release would be told so at its own.
    assert_unsaid(&lines, &["no longer ours", "lost:"]);
}

fn lose_claims(snap: Snap, limit: TimeDelta) {
    let (_, lines) = spring(QUICK, |_| statement("claim_fresh"), snap, postgres, limit);
    assert_said(&lines, "claim without an answer");
}

#[test]
fn a_claim_whose_reply_is_lost_is_confirmed_and_runs_at_once() {
    lose_claims(Snap::SwallowReply, TimeDelta::seconds(1));
}

#[test]
fn a_claim_that_never_arrives_is_made_again_before_a_lease_is_over() {
    lose_claims(Snap::SwallowRequest, TimeDelta::milliseconds(2_800));
}

#[test]
fn a_claim_that_arrives_just_after_it_was_given_up_runs_once() {
    lose_claims(Snap::Postpone(Duration::from_millis(900)), TimeDelta::milliseconds(2_800));
}

#[test]
fn a_claim_that_arrives_when_its_firing_is_over_runs_no_second_time() {
    lose_claims(Snap::Postpone(Duration::from_millis(2_500)), TimeDelta::milliseconds(2_800));
}

fn lose_heartbeats(snap: Snap) {
    let (_, lines) = spring(LONG, |_| statement("heartbeat"), snap, postgres, TimeDelta::seconds(2));
    assert_unsaid(&lines, &["lost:", "its result is void"]);
}

#[test]
fn a_heartbeat_whose_reply_is_lost_is_repeated_and_the_run_goes_on() {
    lose_heartbeats(Snap::SwallowReply);
}

#[test]
fn a_heartbeat_that_never_arrives_is_repeated_and_the_run_goes_on() {
    lose_heartbeats(Snap::SwallowRequest);
}

#[test]
fn a_heartbeat_that_arrives_when_its_run_is_over_revives_nothing() {
    lose_heartbeats(Snap::Postpone(Duration::from_millis(2_500)));
}

fn lose_settles(snap: Snap, limit: TimeDelta) {
    let (_, lines) = spring(QUICK, |_| statement("settle_terminal"), snap, postgres, limit);
    assert_said(&lines, "settle without an answer");
    assert_unsaid(&lines, &["its result is void"]);
}

#[test]
fn a_settle_whose_reply_is_lost_is_found_recorded() {
    lose_settles(Snap::SwallowReply, TimeDelta::seconds(1));
}

#[test]
fn a_settle_that_never_arrives_is_made_again() {
    lose_settles(Snap::SwallowRequest, TimeDelta::seconds(3));
}

#[test]
fn a_settle_that_arrives_late_changes_nothing() {
    lose_settles(Snap::Postpone(Duration::from_millis(2_500)), TimeDelta::seconds(3));
}
