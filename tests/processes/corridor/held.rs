//! A lock that someone else holds never decides that a firing is skipped.

use std::time::Duration;

use testbed::{Deployment, PrivateRedis, wait_until_blocking};

use super::kinds::wait_until_ready;
use crate::program;

const SOON: Duration = Duration::from_secs(30);

fn deployment(redis: &PrivateRedis) -> Deployment {
    Deployment::new(program()).redis(redis.url()).ttl("3s").job("job", Duration::ZERO, "every = \"1s\"")
}

fn lock_key(deployment: &Deployment) -> String {
    format!("{{runner:{}/job}}:lock", deployment.namespace())
}

fn states(deployment: &Deployment) -> Vec<String> {
    let rows = deployment.history("job");
    rows.iter()
        .map(|row| format!("{}({})", row["state"].as_str().unwrap(), row["reason"].as_str().unwrap_or("")))
        .collect()
}

#[test]
fn firings_behind_the_lock_of_a_dead_owner_run_once_it_is_over() {
    let redis = PrivateRedis::start();
    let deployment = deployment(&redis);
    redis.call(&["SET", &lock_key(&deployment), "dead-1|2026-01-01T00:00:00Z|x", "PX", "6000"]);
    let replicas = deployment.start(1);
    wait_until_ready(&replicas[0]);
    wait_until_blocking(SOON, || {
        let states = states(&deployment);
        if states.len() >= 10 { Ok(()) } else { Err(format!("{states:?}")) }
    });
    // Once the lock is free the firings that waited come together, and one may meet another of the
    // job that the ledger says is running. Nothing else may keep one from running.
    let states = states(&deployment);
    let known = |state: &String| ["succeeded()", "running()", "skipped(overlap)"].contains(&state.as_str());
    assert!(states.iter().all(known), "{states:?}");
    let run = states.iter().filter(|state| *state == "succeeded()").count();
    assert!(run * 2 > states.len(), "{states:?}");
}

#[test]
fn a_lock_that_never_expires_keeps_no_firing_from_its_row() {
    let redis = PrivateRedis::start();
    let deployment = deployment(&redis);
    redis.call(&["SET", &lock_key(&deployment), "another program's lock, without an expiry"]);
    let replicas = deployment.start(1);
    wait_until_ready(&replicas[0]);
    let told = replicas[0].wait_for_line(SOON, |line| line.contains("a key without an expiry"));
    assert!(told.contains(&lock_key(&deployment)), "{told}");
    // Each firing is let go after a ttl and found again as a gap; what waits longest for the lock is
    // in the queue, where it can be seen.
    wait_until_blocking(SOON, || {
        let states = states(&deployment);
        if states.iter().any(|state| state == "queued(catch_up)") {
            Ok(())
        } else {
            Err(format!("{states:?}"))
        }
    });
    let behind_the_lock = states(&deployment);
    assert!(behind_the_lock.iter().all(|state| !state.starts_with("skipped")), "{behind_the_lock:?}");
    redis.call(&["DEL", &lock_key(&deployment)]);
    wait_until_blocking(SOON, || {
        let states = states(&deployment);
        let waiting = states.iter().any(|state| state.starts_with("queued"));
        if waiting { Err(format!("{states:?}")) } else { Ok(()) }
    });
}
