//! The clock of a single host is set, and with it that of its ledger: there is no other one to go by.

use std::time::Duration;

use chrono::TimeDelta;
use testbed::rows::{instant, number, state, states};
use testbed::scene::{QUICK, START, end, host_now, instance, wait_for_row};
use testbed::{let_pass, wait_until_blocking};

use crate::embedded;

/// A step of an hour, as at the first contact with a time server, over twelve instants of one job and
/// thousands of another.
#[test]
fn a_clock_that_is_set_forward_an_hour_runs_the_newest_missed_firing_only() {
    let deployment = embedded().job("rare", QUICK, "every = \"5m\"").job("tick", QUICK, "every = \"5s\"");
    let mut replica = deployment.replica().faketime("+0s").spawn();
    instance(&replica);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 1, START);
    let before = effects.instants("rare").len();
    replica.set_clock("+1h");
    effects.wait_for_starts("rare", before + 1, START);
    let ticks = effects.instants("tick").len();
    effects.wait_for_starts("tick", ticks + 2, START);
    let mut replicas = [replica];
    end(&mut replicas);
    let rare = deployment.history("rare");
    // The one that the step may have met just after it was due counts as fired on time.
    let ran = rare.iter().filter(|row| row["origin"] == "catch_up" && row["state"] == "succeeded").count();
    assert_eq!(ran, 1, "{:?}", states(&rare));
    let missed = states(&rare).get("skipped(missed)").copied().unwrap_or(0);
    assert!((10..=12).contains(&missed), "{:?}", states(&rare));
    let instants: Vec<_> = rare.iter().map(|row| instant(row, "scheduled_at")).collect();
    let apart = instants.windows(2).all(|pair| pair[1] - pair[0] == TimeDelta::minutes(5));
    assert!(apart, "left out: {instants:?}");
    // What is left of the thousands: one that ran because it was the newest, and those that were young.
    let tick = deployment.history("tick");
    let caught_up = tick.iter().filter(|row| row["origin"] == "catch_up" && row["attempt"] == 1).count();
    assert!(caught_up <= 4, "{caught_up} of {:?}", states(&tick));
}

#[test]
fn a_clock_that_jumps_over_an_instant_runs_it_late_and_under_its_own_name() {
    let deployment = embedded().ttl("30s").job("tick", QUICK, "every = \"1s\"");
    let mut replica = deployment.replica().faketime("+0s").spawn();
    instance(&replica);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 2, START);
    let before = effects.instants("tick").len();
    replica.set_clock("+6s");
    effects.wait_for_starts("tick", before + 5, START);
    let mut replicas = [replica];
    end(&mut replicas);
    let rows = deployment.history("tick");
    testbed::rows::assert_no_gap(&rows, Duration::from_secs(1));
    effects.assert_nothing_doubled("tick");
    // They come together, and one may meet another of the job; most run, and none is passed over.
    let known = ["succeeded", "skipped(overlap)"];
    assert!(rows.iter().all(|row| known.contains(&state(row).as_str())), "{:?}", states(&rows));
}

#[test]
fn a_clock_that_is_set_back_during_a_run_makes_it_neither_negative_nor_another_one() {
    let at = testbed::scene::soon();
    let deployment = embedded().job("long", Duration::from_secs(3), &format!("{at}\ntimeout = \"10s\"")).job(
        "tick",
        QUICK,
        "every = \"1s\"",
    );
    let mut replica = deployment.replica().faketime("+0s").spawn();
    instance(&replica);
    let effects = deployment.effects();
    effects.wait_for_starts("long", 1, START);
    replica.set_clock("-1h");
    let row = wait_for_row(&deployment, "long", "succeeded");
    assert_eq!((number(&row, "attempt"), number(&row, "crashes")), (1, 0), "{row}");
    assert!(instant(&row, "finished_at") >= instant(&row, "started_at"), "{row}");
    // Back where it was, past instants that have had their turn already.
    let before = effects.instants("tick").len();
    replica.set_clock("-2s");
    replica.set_clock("+0s");
    effects.wait_for_starts("tick", before + 3, START);
    let mut replicas = [replica];
    end(&mut replicas);
    effects.assert_nothing_doubled("tick");
    effects.assert_nothing_doubled("long");
}

/// The first contact with a time server that is wrong by eight hours, and is put right after six seconds.
#[test]
fn a_clock_that_was_hours_ahead_for_seconds_leaves_nothing_out_once_it_is_right() {
    let second = Duration::from_secs(1);
    let deployment = embedded().job("tick", QUICK, "every = \"1s\"").job("rare", QUICK, "every = \"1h\"");
    let mut replica = deployment.replica().faketime("+0s").spawn();
    instance(&replica);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 2, START);
    let begun = host_now();
    replica.set_clock("+8h");
    let_pass(Duration::from_secs(6));
    replica.set_clock("+0s");
    let right = host_now();
    let soon = right + TimeDelta::hours(1);
    // It fires again at once.
    wait_until_blocking(Duration::from_secs(10), || {
        let instants = effects.instants("tick");
        let again = instants.iter().filter(|instant| (right..soon).contains(*instant)).count();
        if again >= 3 { Ok(()) } else { Err(format!("{again} firings since")) }
    });
    // What fell due while it was wrong gets its rows, too.
    wait_until_blocking(Duration::from_secs(60), || {
        let rows = deployment.history("tick");
        let there = rows.iter().filter(|row| (begun..right).contains(&instant(row, "scheduled_at"))).count();
        if there >= 6 { Ok(()) } else { Err(format!("{there} rows: {:?}", states(&rows))) }
    });
    replica.wait_for_line(second, |line| line.contains("the ledger's clock was set"));
    let mut replicas = [replica];
    end(&mut replicas);
    let (tick, rare) = (deployment.history("tick"), deployment.history("rare"));
    let now: Vec<_> = tick.into_iter().filter(|row| instant(row, "scheduled_at") < soon).collect();
    testbed::rows::assert_no_gap(&now, second);
    effects.assert_nothing_doubled("tick");
    // Nothing was decided about the hours in between.
    let decided = rare.iter().filter(|row| instant(row, "scheduled_at") > soon).count();
    assert_eq!(decided, 0, "{:?}", states(&rare));
}
