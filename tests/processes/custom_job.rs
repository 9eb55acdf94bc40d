//! A binary with a job of one's own, run as its users run it: `crates/runner/examples/custom_job.rs`.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use testbed::{Deployment, PrivatePostgres, PrivateRedis, Replica, wait_until_blocking};

/// Longer than a start or an end takes on a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// A built example. It lies beside the tests of the same build: `target/PROFILE/examples`.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let example = test.parent().unwrap().with_file_name("examples").join(name);
    let built = example.exists();
    assert!(built, "{} is missing: cargo build -p runner --example {name}", example.display());
    example
}

/// One job `invoices`; `params` and whatever keys follow it.
fn deployment(params: &str) -> Deployment {
    Deployment::new(&example("custom_job"))
        .jobs(&format!("[jobs.invoices]\nkind = \"invoices\"\nparams = {params}"))
}

fn state(row: &Value) -> String {
    format!("{}/{}", row["state"].as_str().unwrap(), row["reason"].as_str().unwrap_or(""))
}

#[test]
fn params_that_do_not_fit_are_refused_with_their_line() {
    let cases = [
        ("{ customers = \"ada\" }\nevery = \"1s\"", "jobs.invoices.params.customers"),
        ("{ custom = [\"ada\"] }\nevery = \"1s\"", "jobs.invoices.params.custom"),
        ("{ customers = [] }\nevery = \"1s\"", "customers must name at least one"),
        ("{ customers = [\"ada\"], each_ms = -1 }\nevery = \"1s\"", "jobs.invoices.params.each_ms"),
    ];
    for (params, told) in cases {
        let deployment = deployment(params);
        let text = std::fs::read_to_string(deployment.config()).unwrap();
        let line = 1 + text.lines().position(|line| line.starts_with("params")).unwrap();
        for command in [&["check"][..], &[]] {
            let done = deployment.run(command);
            assert_eq!(done.status.code(), Some(78), "{params}: {done:?}");
            assert!(done.stderr.contains(told), "{told} is not told: {done:?}");
            assert!(done.stderr.contains(&format!("jobs.toml:{line}:")), "no line {line}: {done:?}");
        }
    }
}

#[test]
fn it_has_the_command_line_of_the_stock_binary() {
    let deployment = deployment("{ customers = [\"ada\", \"grace\"] }\nat = 2030-01-01T06:00:00Z");
    let check = deployment.run(&["check"]);
    assert!(check.status.success() && check.stdout.contains("1 job, 0 warnings"), "{check:?}");
    let next = deployment.run(&["next", "invoices", "--format", "json", "--after", "2029-12-31T00:00:00Z"]);
    assert!(next.stdout.contains("\"scheduled_at\":\"2030-01-01T06:00:00Z\""), "{next:?}");
    let exec = deployment.run(&["exec", "invoices"]);
    assert!(exec.status.success(), "{exec:?}");
    assert!(exec.stdout.contains("2 invoices"), "{exec:?}");
    let rows = deployment.history("invoices");
    assert_eq!(rows.iter().map(state).collect::<Vec<_>>(), ["succeeded/"], "{rows:?}");
    assert_eq!(rows[0]["origin"], "manual");
}

#[test]
fn a_job_that_prints_hangs_neither_exec_nor_a_replica() {
    let deployment = deployment("{ customers = [\"ada\"] }\nevery = \"1s\"");
    let exec = deployment.run(&["exec", "invoices"]);
    assert!(exec.status.success() && exec.stdout.contains("for ada"), "{exec:?}");
    let mut replica = deployment.start(1).pop().unwrap();
    // The second line shows that the first run has let the next one begin.
    replica.wait_for_line(SOON, |line| line.contains("for ada"));
    replica.lines().wait_for(replica.lines().mark(), SOON, |line| line.contains("for ada"));
    replica.terminate();
    assert!(replica.wait_exit(SOON).success(), "{}", replica.lines().tail());
    let rows = deployment.history("invoices");
    assert!(rows.iter().all(|row| state(row) == "succeeded/"), "{rows:?}");
}

#[test]
fn a_program_may_have_a_logger_of_its_own_on_stdout() {
    let deployment =
        Deployment::new(&example("own_logger")).jobs("[jobs.hello]\nkind = \"hello\"\nevery = \"1s\"");
    let mut replica = deployment.start(1).pop().unwrap();
    let hello = |line: &str| line.contains("own_logger") && line.contains("hello");
    replica.wait_for_line(SOON, hello);
    replica.lines().wait_for(replica.lines().mark(), SOON, hello);
    replica.wait_for_line(SOON, |line| line.contains("runner::") && line.contains("ready"));
    replica.terminate();
    assert!(replica.wait_exit(SOON).success(), "{}", replica.lines().tail());
    let rows = deployment.history("hello");
    assert!(rows.len() >= 2 && rows.iter().all(|row| state(row) == "succeeded/"), "{rows:?}");
}

#[test]
fn sigterm_cancels_a_run_in_order_and_the_next_replica_goes_on_with_its_firing() {
    let job = "{ customers = [\"ada\", \"grace\", \"joan\"], each_ms = 1500 }\nevery = \"1h\"\n\
               start_deadline = \"2h\"\ntimeout = \"30s\"";
    // Nothing is due for an hour at most, so what runs is asked for.
    let deployment = deployment(job).runner("shutdown_grace = \"100ms\"");
    let mut first = deployment.replica().arg("exec").arg("invoices").spawn();
    first.wait_for_line(SOON, |line| line.contains("started"));
    first.terminate();
    let status = first.wait_exit(SOON);
    assert!(!status.success(), "an interrupted exec is no success\n{}", first.lines().tail());
    let row = deployment.history("invoices").pop().unwrap();
    assert_eq!(state(&row), "queued/interrupted", "{row}");
    let error = row["error"].as_str().unwrap();
    assert!(error.contains("stopped before") && error.contains("drain"), "{row}");
    // The job said that itself, in order: it was not dropped.
    let mut second = deployment.start(1).pop().unwrap();
    wait_until_blocking(SOON, || {
        let row = deployment.history("invoices").pop().unwrap();
        if state(&row) == "succeeded/" && row["attempt"] == 2 { Ok(()) } else { Err(row.to_string()) }
    });
    second.terminate();
    assert!(second.wait_exit(SOON).success(), "{}", second.lines().tail());
}

/// The name under which a replica owns runs.
fn instance(replica: &Replica) -> String {
    let ready = replica.wait_for_line(SOON, |line| line.contains(" ready instance="));
    let (_, name) = ready.split_once(" instance=").unwrap();
    name.split(' ').next().unwrap().to_owned()
}

#[test]
fn a_firing_whose_owner_is_killed_leaves_one_committed_effect() {
    let (redis, postgres) = (PrivateRedis::start(), PrivatePostgres::start());
    let ledger = postgres.create_database();
    let ask = |sql: &str| PrivatePostgres::sql_at(&ledger, sql);
    let job = "{ customers = [\"ada\", \"grace\", \"joan\"], each_ms = 400 }\nevery = \"2s\"";
    let deployment = deployment(job).redis(redis.url()).ledger(&ledger);
    let mut replicas: Vec<_> = deployment.start(2).into_iter().map(|new| (instance(&new), new)).collect();
    for _ in 0..4 {
        let (id, owner) = wait_until_blocking(SOON, || {
            let running = ask("SELECT id, owner FROM runner_firings WHERE state = 'running' AND attempt = 1");
            running
                .split_once('|')
                .map(|(id, owner)| (id.to_owned(), owner.to_owned()))
                .ok_or_else(|| ask("SELECT state, count(*) FROM runner_firings GROUP BY state"))
        });
        let at = replicas.iter().position(|(name, _)| *name == owner).unwrap();
        replicas.remove(at).1.kill9();
        let new = deployment.replica().spawn();
        replicas.push((instance(&new), new));
        // It may have committed in the very moment before it died: then one run was enough.
        wait_until_blocking(SOON, || {
            let row = ask(&format!("SELECT state, attempt FROM runner_firings WHERE id = {id}"));
            if row.starts_with("succeeded|") { Ok(()) } else { Err(row) }
        });
    }
    for (_, replica) in &mut replicas {
        replica.terminate();
    }
    for (_, replica) in &mut replicas {
        assert!(replica.wait_exit(SOON).success(), "{}", replica.lines().tail());
    }
    let repeated = ask("SELECT count(*) FROM runner_firings WHERE state = 'succeeded' AND attempt > 1");
    assert_ne!(repeated, "0", "no owner died in the middle of its work: {}", ask("TABLE runner_firings"));
    let invoices =
        ask("SELECT month::timestamptz, customer, count(*) FROM invoices GROUP BY 1, 2 ORDER BY 1, 2");
    let due = ask("SELECT scheduled_at, unnest(ARRAY['ada', 'grace', 'joan']), 1 FROM runner_firings \
                   WHERE state = 'succeeded' ORDER BY 1, 2");
    assert_eq!(
        invoices, due,
        "each firing that succeeded has one invoice for each customer, and no other has any"
    );
}
