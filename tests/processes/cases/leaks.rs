//! What hundreds of runs leave behind: nothing.

use std::time::Duration;

use testbed::scene::{START, end, instance};
use testbed::{Replica, Scene, wait_until_blocking};

use super::command;
use crate::program;

/// What a replica holds.
#[derive(Clone, Copy, Debug)]
struct Holdings {
    descriptors: usize,
    redis: usize,
    postgres: usize,
    memory_kib: usize,
}

impl Holdings {
    fn of(replica: &Replica, scene: &Scene) -> Self {
        let process = format!("/proc/{}", replica.pid());
        let status = std::fs::read_to_string(format!("{process}/status")).unwrap();
        let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        let clients = scene.cluster.redis.call(&["CLIENT", "LIST"]).unwrap();
        let sessions = scene.ask("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'runner'");
        Self {
            descriptors: std::fs::read_dir(format!("{process}/fd")).unwrap().count(),
            redis: clients.lines().count() - 1,
            postgres: sessions.parse().unwrap(),
            memory_kib: memory.split_whitespace().next().unwrap().parse().unwrap(),
        }
    }
}

fn sql(name: &str, statement: &str) -> String {
    format!("[jobs.{name}]\nkind = \"sql\"\nparams = {{ statement = {statement:?} }}\nevery = \"1s\"\n")
}

#[test]
fn four_hundred_runs_leak_no_connection_no_descriptor_and_no_memory() {
    let scene = Scene::new();
    let mut deployment = scene.deployment(program());
    for number in 0..48 {
        let name = format!("job-{number}");
        // Few programs, which cost a machine most; many requests and statements.
        let job = match number % 16 {
            0 => command(&name, &["/bin/true"], "every = \"1s\""),
            1 => command(&name, &["/bin/false"], "every = \"1s\""),
            2..=5 => sql(&name, "SELECT 1"),
            6..=9 => sql(&name, "SELECT 1/0"),
            // Nobody listens there.
            _ => format!(
                "[jobs.{name}]\nkind = \"http\"\nparams = {{ url = \"http://127.0.0.1:9/\" }}\nevery = \"1s\"\n"
            ),
        };
        deployment = deployment.jobs(&job);
    }
    let mut replicas = deployment.start(1);
    instance(&replicas[0]);
    let wait_for_ends = |count: usize| {
        wait_until_blocking(Duration::from_secs(60), || {
            let ended =
                scene.ask("SELECT count(*) FROM runner_firings WHERE state IN ('succeeded', 'failed')");
            if ended.parse::<usize>().unwrap() >= count {
                Ok(())
            } else {
                Err(format!("{ended} runs have ended"))
            }
        });
    };
    // Whatever is made once is made by then.
    wait_for_ends(100);
    let before = Holdings::of(&replicas[0], &scene);
    wait_for_ends(500);
    // Runs come in bursts, once a second; between two of them there is rest.
    let after = wait_until_blocking(START, || {
        let after = Holdings::of(&replicas[0], &scene);
        let as_before = after.descriptors <= before.descriptors.max(40) && after.postgres <= 18;
        if as_before { Ok(after) } else { Err(format!("{before:?} before, {after:?} after")) }
    });
    end(&mut replicas);
    assert!(after.redis <= 2, "one connection for requests, one for renewals: {after:?}");
    assert!(after.memory_kib < before.memory_kib + 16 * 1024, "{before:?} before, {after:?} after");
    let failed = scene.ask("SELECT count(*) FROM runner_firings WHERE state = 'failed'");
    assert!(failed.parse::<usize>().unwrap() >= 150, "{failed}");
}
