//! `runner exec`: one firing in the foreground.

use std::time::Duration;

use testbed::Deployment;

use super::kinds::{misbehaving, with_args};
use crate::program;

fn deployment(script: &str) -> Deployment {
    let argv = serde_json::json!(["/bin/sh", "-c", script]);
    Deployment::new(program()).ttl("3s").jobs(&format!(
        "[jobs.job]\nkind = \"command\"\nparams = {{ argv = {argv} }}\nschedule = \"0 0 1 1 *\"\n"
    ))
}

#[test]
fn exec_runs_the_job_once_through_the_ledger_and_shows_its_output() {
    let deployment = deployment("echo \"hello from $RUNNER_ORIGIN attempt $RUNNER_ATTEMPT\"");
    let done = deployment.run(&["exec", "job"]);
    assert!(done.status.success(), "{done:?}");
    assert_eq!(done.stdout, "hello from manual attempt 1\n");
    let rows = deployment.history("job");
    assert_eq!(rows.len(), 1);
    assert_eq!((rows[0]["state"].as_str(), rows[0]["origin"].as_str()), (Some("succeeded"), Some("manual")));
    assert!(!rows[0]["trigger_key"].as_str().unwrap().is_empty());
}

#[test]
fn exec_ends_with_1_when_the_job_fails_and_says_why() {
    let deployment = deployment("echo half done; exit 3");
    let done = deployment.run(&["exec", "job"]);
    assert_eq!(done.status.code(), Some(1));
    assert_eq!(done.stdout, "half done\n");
    assert!(done.stderr.contains("exit status 3"), "{done:?}");
    assert_eq!(deployment.history("job")[0]["state"], "failed");
}

#[test]
fn exec_of_an_unknown_job_names_those_that_are_there() {
    let done = deployment("true").run(&["exec", "jbo"]);
    assert_eq!(done.status.code(), Some(1));
    assert!(done.stderr.contains("there is no job \"jbo\"; the file declares job"), "{done:?}");
}

#[test]
fn a_second_signal_ends_exec_even_when_the_run_cannot_be_stopped() {
    let deployment = misbehaving("{ block_for = 60 }", "timeout = \"50s\"\nkill_grace = \"100ms\"");
    let mut exec = with_args(&deployment, &["exec", "job"]).spawn();
    let soon = Duration::from_secs(20);
    exec.wait_for_line(soon, |line| line.contains("started"));
    exec.terminate();
    exec.wait_for_line(soon, |line| line.contains("stuck: the run ignores its cancellation"));
    exec.terminate();
    let status = exec.wait_exit(Duration::from_secs(10));
    assert!(!status.success(), "{status:?}");
    exec.wait_for_line(soon, |line| line.contains("left behind: the run did not end"));
}
