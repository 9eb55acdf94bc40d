//! SIGTERM in the middle of a run.

use std::time::Duration;

use testbed::rows::state;
use testbed::{Cluster, wait_until_blocking};

use crate::program;

#[test]
fn a_drained_replica_hands_a_long_run_over_without_counting_a_failure() {
    let cluster = Cluster::start();
    let deployment = cluster.deployment(program()).ttl("3s").runner("shutdown_grace = \"2s\"").job(
        "long",
        Duration::from_secs(20),
        "every = \"20s\"\ntimeout = \"40s\"\nkill_grace = \"500ms\"",
    );
    let mut first = deployment.start(1).remove(0);
    wait_until_blocking(Duration::from_secs(40), || {
        if deployment.effects().all().is_empty() { Err("nothing has started".into()) } else { Ok(()) }
    });
    let mut second = deployment.start(1).remove(0);
    second.wait_for_line(Duration::from_secs(20), |line| line.contains("ready"));
    first.terminate();
    let status = first.wait_exit(Duration::from_secs(5));
    assert!(status.success(), "{status:?}");
    let row = wait_until_blocking(Duration::from_secs(10), || {
        let rows = deployment.history("long");
        match rows.first() {
            Some(row) if row["attempt"] == 2 => Ok(row.clone()),
            row => Err(format!("{row:?}")),
        }
    });
    assert_eq!(state(&row), "running");
    assert_eq!(row["crashes"], 0);
    second.terminate();
    assert!(second.wait_exit(Duration::from_secs(5)).success());
}

#[test]
fn a_drain_uses_up_none_of_the_attempts() {
    let cluster = Cluster::start();
    let deployment = cluster.deployment(program()).ttl("3s").runner("shutdown_grace = \"200ms\"").jobs(
        r#"
        [jobs.fails]
        kind = "command"
        params = { argv = ["/bin/sh", "-c", "[ $RUNNER_ATTEMPT != 1 ] || sleep 20; exit 1"] }
        every = "20s"
        timeout = "40s"
        kill_grace = "500ms"
        max_attempts = 2
        backoff = { initial = "1ms" }
        "#,
    );
    let first_row = |wanted: &str| {
        wait_until_blocking(Duration::from_secs(40), || {
            let rows = deployment.history("fails");
            let row = rows.first().ok_or("no row yet")?;
            if state(row) == wanted { Ok(row.clone()) } else { Err(format!("{row}")) }
        })
    };
    let mut first = deployment.start(1).remove(0);
    first.wait_for_line(Duration::from_secs(20), |line| line.contains("ready"));
    first_row("running");
    first.terminate();
    assert!(first.wait_exit(Duration::from_secs(5)).success());
    let _second = deployment.start(1).remove(0);
    let row = first_row("failed(error)");
    assert_eq!((&row["attempt"], &row["crashes"]), (&3.into(), &0.into()), "two failures after the drain");
}

#[test]
fn a_second_signal_does_not_wait_for_the_grace() {
    let cluster = Cluster::start();
    let deployment = cluster.deployment(program()).ttl("3s").runner("shutdown_grace = \"60s\"").job(
        "long",
        Duration::from_secs(30),
        "every = \"20s\"\ntimeout = \"40s\"\nkill_grace = \"500ms\"",
    );
    let mut replica = deployment.start(1).remove(0);
    wait_until_blocking(Duration::from_secs(40), || {
        if deployment.effects().all().is_empty() { Err("nothing has started".into()) } else { Ok(()) }
    });
    replica.terminate();
    replica.wait_for_line(Duration::from_secs(5), |line| line.contains("draining"));
    replica.terminate();
    assert!(replica.wait_exit(Duration::from_secs(5)).success());
    let rows = deployment.history("long");
    assert_eq!(state(&rows[0]), "queued(interrupted)");
}
