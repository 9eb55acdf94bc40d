//! What a replica writes, and a reader that stands still, dies, or has no room. The replica never waits for it.

use std::fs::File;
use std::io::{BufRead, BufReader, PipeReader, Read, Write, pipe};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags, mkfifoat, open};
use rustix::pipe::fcntl_setpipe_size;
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use testbed::client::get;
use testbed::{Account, Deployment, Replica, wait_until_blocking};

use crate::admin::ADMIN;
use crate::admin::listening::ports;
use crate::admin::numbers::page;
use crate::program;

/// Longer than a start, a few firings or an end take on a busy machine.
const SOON: Duration = Duration::from_secs(30);
/// The smallest pipe there is, in bytes. Two seconds of firings fill it.
const SMALL: usize = 4_096;

/// Eight jobs a second, each of which logs two lines, and no server.
fn chatty() -> Deployment {
    (0..8).fold(Deployment::new(program()).jobs(ADMIN), |deployment, number| {
        deployment.job(&format!("tick-{number}"), Duration::ZERO, "every = \"1s\"")
    })
}

/// A pipe of 4 KiB.
fn small_pipe() -> (PipeReader, OwnedFd) {
    let (reader, writer) = pipe().unwrap();
    fcntl_setpipe_size(&writer, SMALL).unwrap();
    (reader, writer.into())
}

/// Where it serves its probes. It cannot be asked for its log.
fn address(replica: &Replica) -> SocketAddr {
    let port = wait_until_blocking(SOON, || {
        ports(replica).first().copied().ok_or_else(|| "it does not listen yet".into())
    });
    (Ipv4Addr::LOCALHOST, port).into()
}

/// Fires on long after its output has filled up, answers its probes, drains at SIGTERM, and has run nothing twice.
#[track_caller]
fn assert_works(deployment: &Deployment, mut replica: Replica) {
    let effects = deployment.effects();
    let address = address(&replica);
    // 8 jobs, 8 seconds, two lines of more than 100 bytes each time: three times what the pipe holds.
    for number in 0..8 {
        effects.wait_for_starts(&format!("tick-{number}"), 8, SOON);
    }
    assert_eq!(get(address, "/healthz").status, 200);
    assert_eq!(get(address, "/readyz").status, 200);
    replica.terminate();
    assert!(replica.wait_exit(SOON).success());
    for number in 0..8 {
        let name = format!("tick-{number}");
        effects.assert_nothing_doubled(&name);
        let account = Account::of(deployment, &name, Duration::from_secs(1));
        account.assert_states(&["succeeded"]);
    }
}

#[test]
fn a_log_that_nobody_reads_holds_nothing_up() {
    let deployment = chatty();
    let (reader, output) = small_pipe();
    assert_works(&deployment, deployment.replica().output(output).spawn());
    drop(reader);
}

#[test]
fn a_reader_that_reads_again_gets_the_lines_that_waited() {
    let deployment = chatty();
    let (reader, output) = small_pipe();
    let mut replica = deployment.replica().output(output).spawn();
    for number in 0..8 {
        deployment.effects().wait_for_starts(&format!("tick-{number}"), 8, SOON);
    }
    replica.terminate();
    let lines: Vec<String> = BufReader::new(reader).lines().map_while(Result::ok).collect();
    assert!(replica.wait_exit(SOON).success());
    let succeeded = lines.iter().filter(|line| line.contains("succeeded")).count();
    assert!(succeeded >= 64, "{succeeded} of at least 64 runs are told of:\n{}", lines.join("\n"));
    assert!(lines.last().is_some_and(|line| line.ends_with("stopped")), "{lines:?}");
}

#[test]
fn a_reader_of_the_log_that_dies_stops_nothing() {
    let deployment = chatty();
    let (reader, output) = small_pipe();
    let replica = deployment.replica().output(output).spawn();
    let ready = BufReader::new(reader).lines().map_while(Result::ok).any(|line| line.contains("ready"));
    assert!(ready, "it never became ready");
    // The reader is gone with the iterator.
    assert_works(&deployment, replica);
}

#[test]
fn a_full_disk_under_the_log_stops_nothing_and_lost_lines_are_counted() {
    let deployment = chatty();
    let full = File::options().write(true).open("/dev/full").unwrap();
    let replica = deployment.replica().output(full).spawn();
    let address = address(&replica);
    wait_until_blocking(SOON, || {
        let lost = page(address).sum("runner_log_lines_lost_total", &[]);
        if lost >= 20.0 { Ok(()) } else { Err(format!("{lost} lines were lost")) }
    });
    assert_works(&deployment, replica);
}

#[test]
fn lost_lines_are_told_of_as_soon_as_a_line_can_be_written_again() {
    let deployment = chatty();
    let fifo = deployment.dir().join("log");
    mkfifoat(CWD, &fifo, Mode::RUSR | Mode::WUSR).unwrap();
    let read = || {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        File::from(open(&fifo, flags, Mode::empty()).unwrap())
    };
    let reader = read();
    let output = File::options().write(true).open(&fifo).unwrap();
    let mut replica = deployment.replica().output(output).spawn();
    let address = address(&replica);
    drop(reader);
    let lost = || page(address).sum("runner_log_lines_lost_total", &[]);
    wait_until_blocking(SOON, || if lost() >= 1.0 { Ok(()) } else { Err("no line is lost".into()) });
    let mut reader = read();
    let mut text = Vec::new();
    wait_until_blocking(SOON, || {
        // The end of what is there now, or "not now".
        reader.read_to_end(&mut text).ok();
        let text = String::from_utf8_lossy(&text);
        if text.contains("log lines were lost: nobody") { Ok(()) } else { Err(text.into_owned()) }
    });
    replica.terminate();
    assert!(replica.wait_exit(SOON).success());
}

#[test]
fn a_terminal_that_is_paused_stops_nothing() {
    let deployment = chatty();
    let mut terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).map(File::from).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let output = ioctl_tiocgptpeer(terminal.as_fd(), OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    // Ctrl-S
    terminal.write_all(&[0x13]).unwrap();
    assert_works(&deployment, deployment.replica().output(output).spawn());
}
