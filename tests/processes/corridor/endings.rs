//! How runs end.

use std::time::Duration;

use super::kinds::{misbehaving, rows, start, wait_for_first};

const SOON: Duration = Duration::from_secs(30);

#[test]
fn a_run_that_panics_has_failed_and_the_replica_lives_on() {
    let deployment = misbehaving("\"panic\"", "");
    let mut replica = start(&deployment);
    let row = wait_for_first(&deployment, SOON, |row| row["state"] == "failed");
    assert_eq!((row["reason"].as_str(), row["attempt"].as_i64()), (Some("panicked"), Some(1)));
    assert!(row["error"].as_str().unwrap().contains("over the edge"), "{row}");
    testbed::wait_until_blocking(SOON, || {
        let rows = rows(&deployment);
        if rows.len() > 2 { Ok(()) } else { Err(format!("{} firings so far", rows.len())) }
    });
    replica.terminate();
    assert!(replica.wait_exit(SOON).success());
}

#[test]
fn a_run_that_fails_is_tried_again_after_its_backoff_until_it_succeeds() {
    let deployment = misbehaving(
        "\"fail_twice\"",
        "max_attempts = 3\nbackoff = { initial = \"200ms\", max = \"1s\", factor = 2.0 }",
    );
    let _replica = start(&deployment);
    let row = wait_for_first(&deployment, SOON, |row| row["state"] == "succeeded");
    assert_eq!((row["attempt"].as_i64(), row["crashes"].as_i64()), (Some(3), Some(0)));
}

#[test]
fn a_run_that_runs_out_of_attempts_has_failed_with_its_last_error() {
    let deployment = misbehaving(
        "\"fail_twice\"",
        "max_attempts = 2\nbackoff = { initial = \"100ms\", max = \"1s\", factor = 2.0 }",
    );
    let _replica = start(&deployment);
    let row = wait_for_first(&deployment, SOON, |row| row["state"] == "failed");
    assert_eq!((row["attempt"].as_i64(), row["reason"].as_str()), (Some(2), Some("error")));
    assert!(row["error"].as_str().unwrap().contains("the bank is busy"), "{row}");
}

#[test]
fn a_run_that_fails_for_good_is_not_tried_again() {
    let deployment = misbehaving("\"fail_for_good\"", "max_attempts = 5");
    let _replica = start(&deployment);
    let row = wait_for_first(&deployment, SOON, |row| row["state"] == "failed");
    assert_eq!(row["attempt"], 1);
    assert!(row["error"].as_str().unwrap().contains("the account is closed"), "{row}");
}

#[test]
fn a_run_longer_than_its_timeout_is_cancelled_and_has_failed() {
    let deployment = misbehaving("\"wait_politely\"", "timeout = \"1s\"");
    let _replica = start(&deployment);
    let row = wait_for_first(&deployment, SOON, |row| row["state"] == "failed");
    assert_eq!((row["reason"].as_str(), row["attempt"].as_i64()), (Some("timeout"), Some(1)));
}

/// The timeout is derived from the lock's longest life, and both end together.
#[test]
fn a_run_without_a_timeout_of_its_own_times_out_rather_than_losing_its_lock() {
    let deployment = misbehaving("\"wait_politely\"", "");
    let replica = start(&deployment);
    let row = wait_for_first(&deployment, SOON, |row| row["state"] != "running");
    assert_eq!((row["state"].as_str(), row["reason"].as_str()), (Some("failed"), Some("timeout")));
    assert!(!replica.lines().tail().contains("lost"), "{}", replica.lines().tail());
}

#[test]
fn a_run_that_ignores_its_cancellation_is_dropped_after_its_grace() {
    let deployment = misbehaving("\"ignore_cancellation\"", "timeout = \"1s\"\nkill_grace = \"500ms\"");
    let replica = start(&deployment);
    let row = wait_for_first(&deployment, SOON, |row| row["state"] != "running");
    assert_eq!((row["state"].as_str(), row["reason"].as_str()), (Some("failed"), Some("timeout")));
    assert!(!replica.lines().tail().contains("stuck"), "{}", replica.lines().tail());
}

/// It sleeps on its thread for 9 s, three leases; its timeout is 1 s.
#[test]
fn a_run_that_blocks_its_thread_past_its_timeout_is_not_settled_while_it_may_act() {
    let deployment = misbehaving("{ block_for = 9 }", "timeout = \"1s\"\nkill_grace = \"500ms\"");
    let replica = start(&deployment);
    replica.wait_for_line(SOON, |line| line.contains("stuck"));
    let first = rows(&deployment).remove(0);
    assert_eq!((first["state"].as_str(), first["attempt"].as_i64()), (Some("running"), Some(1)));
    let row = wait_for_first(&deployment, SOON, |row| row["state"] != "running");
    assert_eq!((row["state"].as_str(), row["reason"].as_str()), (Some("failed"), Some("timeout")));
    assert_eq!((row["attempt"].as_i64(), row["crashes"].as_i64()), (Some(1), Some(0)));
    let took = |key: &str| row[key].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap();
    let ran = took("finished_at") - took("started_at");
    assert!(ran >= chrono::TimeDelta::seconds(9), "settled after {ran} while it still ran: {row}");
}

#[test]
fn a_run_that_says_too_much_is_recorded_with_the_end_of_it() {
    let deployment = misbehaving("\"rant\"", "");
    let _replica = start(&deployment);
    let row = wait_for_first(&deployment, SOON, |row| row["state"] == "failed");
    let (output, error) = (row["output"].as_str().unwrap(), row["error"].as_str().unwrap());
    assert!(
        output.starts_with("[20971") && output.contains(" bytes cut]\n") && output.ends_with("the end"),
        "{}",
        output.len()
    );
    assert!(error.contains(" bytes cut]\n") && error.ends_with("the end"), "{}", error.len());
    assert!(error.len() < 17 << 10, "{}", error.len());
}
