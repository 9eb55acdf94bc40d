//! Firings that nobody wrote a row for: found, decided once, and never invented.

use std::time::Duration;

use testbed::rows::{assert_no_gap, states};
use testbed::{Cluster, Deployment, Replica, let_pass, wait_until_blocking};

use crate::program;

const SECOND: Duration = Duration::from_secs(1);
const SOON: Duration = Duration::from_secs(30);

fn end(replicas: Vec<Replica>) {
    for mut replica in replicas {
        replica.terminate();
        assert!(replica.wait_exit(SOON).success());
    }
}

/// Two replicas for a while, nobody for `downtime`, two replicas again.
fn with_a_downtime(keys: &str, downtime: Duration) -> (Cluster, Deployment) {
    let cluster = Cluster::start();
    let deployment = cluster.deployment(program()).ttl("2s").job(
        "tick",
        Duration::ZERO,
        &format!("every = \"1s\"\n{keys}"),
    );
    let replicas = deployment.start(2);
    deployment.effects().wait_for_starts("tick", 2, SOON);
    end(replicas);
    let before = deployment.effects().instants("tick").len();
    let_pass(downtime);
    let replicas = deployment.start(2);
    deployment.effects().wait_for_starts("tick", before + 5, SOON);
    wait_until_blocking(SOON, || {
        let counted = states(&deployment.history("tick"));
        if counted.keys().any(|state| state.starts_with("queued")) {
            Err(format!("{counted:?}"))
        } else {
            Ok(())
        }
    });
    end(replicas);
    (cluster, deployment)
}

#[test]
fn after_a_downtime_the_newest_missed_firings_run_and_the_older_ones_have_rows() {
    let (_cluster, deployment) = with_a_downtime("", Duration::from_secs(10));
    let rows = deployment.history("tick");
    assert_no_gap(&rows, SECOND);
    deployment.effects().assert_nothing_doubled("tick");
    let counted = states(&rows);
    let missed = counted.get("skipped(missed)").copied().unwrap_or(0);
    // What was younger than two ttls at the restart counts as a fault and runs; the rest is missed.
    assert!((3..=8).contains(&missed), "{counted:?}");
    let caught_up =
        rows.iter().filter(|row| row["origin"] == "catch_up" && row["state"] == "succeeded").count();
    assert!(caught_up >= 1, "{rows:#?}");
}

#[test]
fn what_is_older_than_its_start_deadline_after_a_downtime_does_not_run() {
    let (_cluster, deployment) = with_a_downtime("start_deadline = \"4s\"", Duration::from_secs(12));
    let rows = deployment.history("tick");
    assert_no_gap(&rows, SECOND);
    let counted = states(&rows);
    assert!(counted.get("skipped(missed)").is_some_and(|count| *count >= 6), "{counted:?}");
}

/// What became of the firings that were older than two ttls when the replicas came back, oldest first.
fn older_than_a_fault(deployment: &Deployment) -> Vec<String> {
    let rows = deployment.history("tick");
    assert_no_gap(&rows, SECOND);
    deployment.effects().assert_nothing_doubled("tick");
    let caught = |row: &&serde_json::Value| row["origin"] == "catch_up";
    let decided = rows.iter().filter(caught).map(|row| row["created_at"].as_str().unwrap()).min();
    let decided = decided.expect("a gap").parse::<chrono::DateTime<chrono::Utc>>().unwrap();
    let at = |row: &serde_json::Value| {
        row["scheduled_at"].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap()
    };
    let young = decided - chrono::TimeDelta::seconds(5);
    rows.iter().filter(caught).filter(|row| at(row) < young).map(testbed::rows::state).collect()
}

#[test]
fn all_that_was_missed_runs_oldest_first_up_to_the_limit() {
    let keys = "misfire = \"all\"\nmax_catchup = 3";
    let (_cluster, deployment) = with_a_downtime(keys, Duration::from_secs(12));
    let became = older_than_a_fault(&deployment);
    assert!(became.len() >= 5, "{became:?}");
    assert_eq!(became[..3], ["succeeded", "succeeded", "succeeded"], "{became:?}");
    assert!(became[3..].iter().all(|state| state == "skipped(missed)"), "{became:?}");
    let mut started: Vec<_> = deployment
        .history("tick")
        .iter()
        .filter(|row| row["origin"] == "catch_up" && row["state"] == "succeeded")
        .map(|row| (row["started_at"].to_string(), row["scheduled_at"].to_string()))
        .collect();
    started.sort();
    assert!(started.is_sorted_by_key(|(_, instant)| instant), "out of order: {started:#?}");
}

#[test]
fn nothing_that_was_missed_runs_where_the_job_says_so() {
    let (_cluster, deployment) = with_a_downtime("misfire = \"skip\"", Duration::from_secs(12));
    let became = older_than_a_fault(&deployment);
    assert!(became.len() >= 5 && became.iter().all(|state| state == "skipped(missed)"), "{became:?}");
}

#[test]
fn a_schedule_that_changed_during_a_downtime_leaves_no_gaps_in_the_past() {
    let cluster = Cluster::start();
    let deployment = cluster.deployment(program()).ttl("2s").job("tick", Duration::ZERO, "every = \"10m\"");
    let first = deployment.start(1);
    first[0].wait_for_line(SOON, |line| line.contains("ready instance="));
    end(first);
    let_pass(Duration::from_secs(5));
    let changed = deployment.config();
    let text = std::fs::read_to_string(&changed).unwrap().replace("every = \"10m\"", "every = \"1s\"");
    let deployment = deployment.file(&text);
    let restarted = chrono_now();
    let second = deployment.start(2);
    deployment.effects().wait_for_starts("tick", 5, SOON);
    end(second);
    let rows = deployment.history("tick");
    let first = rows[0]["scheduled_at"].as_str().unwrap().parse::<chrono::DateTime<chrono::Utc>>().unwrap();
    assert!(
        first > restarted - chrono::TimeDelta::seconds(1),
        "{first} was invented; the restart was at {restarted}"
    );
    assert_no_gap(&rows, SECOND);
}

fn chrono_now() -> chrono::DateTime<chrono::Utc> {
    #[expect(clippy::disallowed_methods, reason = "the test's own clock")]
    chrono::Utc::now()
}
