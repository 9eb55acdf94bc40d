//! A replica does what the tests of the product lean on; a shell stands for the product.

#![expect(clippy::disallowed_methods, reason = "the wall clock is what is measured here")]

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use testbed::{Replica, ReplicaBuilder, wait_until_blocking};

const SOON: Duration = Duration::from_secs(10);

fn shell(script: &str) -> ReplicaBuilder {
    Replica::builder(Path::new("/bin/sh")).arg("-c").arg(script)
}

#[test]
fn its_lines_its_environment_and_its_end_are_seen() {
    let mut replica = shell("echo out $WORD; echo err >&2; exit 7").env("WORD", "given").spawn();
    replica.wait_for_line(SOON, |line| line == "out given");
    replica.wait_for_line(SOON, |line| line == "err");
    assert_eq!(replica.wait_exit(SOON).code(), Some(7));
    assert!(!replica.is_running());
}

#[test]
fn the_config_comes_as_an_option() {
    let replica = Replica::builder(Path::new("/bin/echo")).config(Path::new("/a/jobs.toml")).spawn();
    replica.wait_for_line(SOON, |line| line == "--config /a/jobs.toml");
}

#[test]
fn a_stopped_replica_stands_still_until_it_is_continued() {
    let builder = shell("while read line; do echo $line; done < $FIFO");
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, 0o600.into()).unwrap();
    let mut replica = builder.env("FIFO", &fifo).spawn();
    let mut pipe = std::fs::OpenOptions::new().write(true).open(&fifo).unwrap();
    replica.stop();
    std::io::Write::write_all(&mut pipe, b"said while it slept\n").unwrap();
    let state = std::fs::read_to_string(format!("/proc/{}/stat", replica.pid())).unwrap();
    assert!(state.contains(" T "), "{state}");
    assert!(replica.lines().since(0).is_empty());
    replica.cont();
    replica.wait_for_line(SOON, |line| line == "said while it slept");
}

#[test]
fn terminate_is_a_request_and_kill9_is_not() {
    let stubborn = "trap 'echo asked' TERM; echo ready; while :; do sleep 0.05; done";
    let mut replica = shell(stubborn).spawn();
    replica.wait_for_line(SOON, |line| line == "ready");
    replica.terminate();
    replica.wait_for_line(SOON, |line| line == "asked");
    assert!(replica.is_running());
    replica.kill9();
    assert_eq!(replica.wait_exit(SOON).signal(), Some(9));
}

#[test]
fn a_drop_leaves_no_descendant_alive_not_even_in_a_session_of_its_own() {
    let replica = shell("setsid sleep 3600 & sh -c 'sleep 3600 & wait' & echo started; wait").spawn();
    replica.wait_for_line(SOON, |line| line == "started");
    let family = wait_until_blocking(SOON, || {
        let family = replica.descendants();
        if family.len() >= 3 { Ok(family) } else { Err(format!("descendants: {family:?}")) }
    });
    drop(replica);
    // Whoever is left is a zombie that nobody has waited for: it has no command line any more.
    let alive = |pid: &u32| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty());
    assert_eq!(family.into_iter().filter(alive).collect::<Vec<_>>(), Vec::<u32>::new());
}

#[test]
fn a_killed_replica_still_knows_what_it_left_behind() {
    let mut replica = shell("sleep 3600 & echo started; wait").spawn();
    replica.wait_for_line(SOON, |line| line == "started");
    replica.kill9();
    assert_eq!(replica.descendants().len(), 1);
}

#[test]
fn the_wall_clock_of_one_replica_can_be_wrong_and_be_moved() {
    let tell = "while :; do date +%s; sleep 0.05; done";
    let mut replica = shell(tell).faketime("+1h").spawn();
    let ahead = |line: &str| {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs_f64();
        line.parse::<f64>().unwrap() - now
    };
    replica.wait_for_line(SOON, |line| (3590.0..3610.0).contains(&ahead(line)));
    replica.set_clock("-2h");
    let mark = replica.lines().mark();
    replica.lines().wait_for(mark, SOON, |line| (-7210.0..-7190.0).contains(&ahead(line)));
}

#[test]
#[should_panic(expected = "it still runs")]
fn waiting_in_vain_for_the_end_is_a_failure() {
    let mut replica = shell("sleep 3600").spawn();
    replica.wait_exit(Duration::from_millis(50));
}
