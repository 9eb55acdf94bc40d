//! The owner of a run killed, or frozen, in the middle of it.

use std::time::Duration;

use testbed::rows::state;
use testbed::{Cluster, Deployment, EffectKind, Replica, wait_until_blocking};

use crate::program;

/// One firing, soon, of a job that works for `work`; its owner and the other replicas.
fn one_firing(deployment: Deployment) -> (Deployment, Replica, Vec<Replica>) {
    let mut replicas = deployment.start(2);
    let effects = deployment.effects();
    wait_until_blocking(Duration::from_secs(30), || {
        if effects.all().is_empty() { Err("the firing has not started".into()) } else { Ok(()) }
    });
    // The owner is the one whose warden runs the command.
    let owner = wait_until_blocking(Duration::from_secs(5), || {
        replicas
            .iter()
            .position(|replica| !replica.descendants().is_empty())
            .ok_or_else(|| "no replica has a child".to_owned())
    });
    let owner = replicas.swap_remove(owner);
    (deployment, owner, replicas)
}

fn soon() -> String {
    #[expect(clippy::disallowed_methods, reason = "the test's own clock")]
    let at = chrono::Utc::now() + chrono::TimeDelta::seconds(5);
    format!("at = {}", at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
}

fn wait_for_state(deployment: &Deployment, job: &str, wanted: &str, deadline: Duration) -> serde_json::Value {
    wait_until_blocking(deadline, || {
        let rows = deployment.history(job);
        match rows.as_slice() {
            [row] if state(row) == wanted => Ok(row.clone()),
            rows => Err(format!("{rows:?}")),
        }
    })
}

#[test]
fn another_replica_takes_over_from_a_killed_owner_whose_command_is_gone() {
    let cluster = Cluster::start();
    let work = Duration::from_secs(4);
    let (deployment, mut owner, others) = one_firing(cluster.deployment(program()).ttl("2s").job(
        "pay",
        work,
        &format!("{}\ntimeout = \"10s\"", soon()),
    ));
    let started = deployment.effects().all()[0].clone();
    owner.kill9();
    let row = wait_for_state(&deployment, "pay", "succeeded", Duration::from_secs(15));
    assert_eq!(row["attempt"], 2);
    assert!(row["fence"].as_i64().unwrap() > started.fence);
    let lines = deployment.effects().all();
    // The first attempt's command was told to stop before the second one began, and never ended its work.
    let first: Vec<_> = lines.iter().filter(|line| line.fence == started.fence).collect();
    assert!(first.iter().all(|line| line.kind != EffectKind::End), "{first:#?}");
    assert_eq!(deployment.effects().overlaps("pay"), Vec::<String>::new());
    drop(others);
}

#[test]
fn a_job_of_at_most_once_whose_owner_was_killed_ends_as_lost_and_does_not_run_again() {
    let cluster = Cluster::start();
    let keys = format!("{}\ntimeout = \"10s\"\ndelivery = \"at_most_once\"", soon());
    let (deployment, mut owner, others) =
        one_firing(cluster.deployment(program()).ttl("2s").job("charge", Duration::from_secs(4), &keys));
    owner.kill9();
    let row = wait_for_state(&deployment, "charge", "lost(owner_lost)", Duration::from_secs(15));
    assert_eq!(row["attempt"], 1);
    let starts = deployment.effects().all().iter().filter(|line| line.kind == EffectKind::Start).count();
    assert_eq!(starts, 1);
    drop(others);
}

#[test]
fn an_owner_that_wakes_from_a_freeze_records_nothing_and_says_what_it_lost() {
    let cluster = Cluster::start();
    let work = Duration::from_secs(4);
    let (deployment, mut owner, others) = one_firing(cluster.deployment(program()).ttl("2s").job(
        "pay",
        work,
        &format!("{}\ntimeout = \"10s\"", soon()),
    ));
    owner.stop();
    let row = wait_for_state(&deployment, "pay", "succeeded", Duration::from_secs(20));
    assert_eq!(row["attempt"], 2);
    owner.cont();
    let line = owner.wait_for_line(Duration::from_secs(10), |line| line.contains("its result is void"));
    assert!(line.contains("lost"), "{line}");
    let after = wait_for_state(&deployment, "pay", "succeeded", Duration::from_secs(5));
    assert_eq!(after, row, "the woken owner changed the row");
    assert_eq!(deployment.effects().overlaps("pay"), Vec::<String>::new());
    owner.terminate();
    assert!(owner.wait_exit(Duration::from_secs(15)).success());
    drop(others);
}
