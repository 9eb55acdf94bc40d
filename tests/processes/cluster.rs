//! `scripts/cluster` as a person uses it: start, look, Ctrl-C.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use testbed::{Replica, wait_until_blocking};

use crate::program;

/// Longer than two servers and three replicas take to start on a busy machine.
const START: Duration = Duration::from_secs(90);
/// Longer than the grace of its jobs and the end of its servers.
const END: Duration = Duration::from_secs(40);

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The command lines that name `home`: servers rewrite their environment, so it does not tell.
fn at_work_in(home: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap();
    let command_line = |entry: std::io::Result<std::fs::DirEntry>| {
        let line = std::fs::read(entry.ok()?.path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    };
    processes.filter_map(command_line).filter(|line| line.contains(home)).collect()
}

#[test]
fn the_cluster_shows_who_ran_what_and_leaves_nothing_behind() {
    let mut cluster =
        Replica::builder(&root().join("scripts/cluster")).arg("--runner").arg(program()).cwd(&root()).spawn();
    let hint = cluster.wait_for_line(START, |line| line.trim_start().starts_with("redis-cli -s "));
    let socket = PathBuf::from(hint.split_whitespace().nth(2).unwrap());
    assert!(socket.exists(), "{hint}");
    for replica in ["replica 1", "replica 2", "replica 3"] {
        cluster.wait_for_line(START, |line| {
            ["attempt 1", "fence ", "succeeded", replica].iter().all(|word| line.contains(word))
        });
    }
    // Every third second something waits behind the job that is longer than its period.
    cluster.wait_for_line(START, |line| line.contains("skipped(overlap)"));
    let home = socket.parent().unwrap().to_str().unwrap();
    assert!(at_work_in(home).len() >= 3, "{:?}", at_work_in(home));
    kill_process(Pid::from_raw(i32::try_from(cluster.pid()).unwrap()).unwrap(), Signal::INT).unwrap();
    let status = cluster.wait_exit(END);
    assert!(status.success(), "{status:?}\n{}", cluster.lines().tail());
    assert_eq!(at_work_in(home), Vec::<String>::new());
    assert!(!Path::new(home).exists(), "{home} was left behind");
    // A command and its warden end with their replica, a moment after it at most.
    wait_until_blocking(END, || match cluster.descendants() {
        left if left.is_empty() => Ok(()),
        left => Err(format!("still there: {left:?}")),
    });
}
