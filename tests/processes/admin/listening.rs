//! The listener: where it is, where it is not, and that nobody can shut others out.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use testbed::client::{ask, connect, get};
use testbed::{Replica, wait_until_blocking};

use super::{START, address, alone};
use crate::program;

/// A probe's own patience.
const PROMPT: Duration = Duration::from_secs(1);

#[track_caller]
fn answers_promptly(address: SocketAddr) {
    let stream = TcpStream::connect_timeout(&address, PROMPT).unwrap();
    stream.set_read_timeout(Some(PROMPT)).unwrap();
    let mut stream = stream;
    stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(text.starts_with("HTTP/1.0 200") && text.ends_with("alive\n"), "{text}");
}

#[test]
fn clients_that_say_nothing_or_dribble_keep_no_probe_waiting() {
    let deployment = alone();
    let replicas = deployment.start(1);
    let address = address(&replicas[0]);
    let mut slow: Vec<TcpStream> = Vec::new();
    for number in 0..200 {
        let mut stream = connect(address);
        if number % 2 == 0 {
            stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ").unwrap();
        }
        slow.push(stream);
        if number % 20 == 0 {
            answers_promptly(address);
        }
    }
    answers_promptly(address);
    // The first made room for the others, long before its time to ask was over.
    let mut first = slow.remove(0);
    first.set_read_timeout(Some(PROMPT)).unwrap();
    let closed = match first.read(&mut [0; 1]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    };
    assert!(closed, "200 connections are open at once");
    // The last of them is among those that are kept, and has a few seconds to ask; then it is closed.
    let mut last = slow.pop().unwrap();
    let mut rest = Vec::new();
    last.read_to_end(&mut rest).unwrap();
    answers_promptly(address);
}

#[test]
fn what_is_no_request_for_a_page_is_refused_and_the_connection_closed() {
    let deployment = alone();
    let replicas = deployment.start(1);
    let address = address(&replicas[0]);
    let status = |request: &str| ask(address, request).map(|answer| answer.status);
    assert_eq!(get(address, "/").status, 404);
    assert_eq!(get(address, "/metrics/").status, 404);
    assert_eq!(status("HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), Ok(200));
    assert_eq!(status("POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"), Ok(405));
    assert_eq!(status("nonsense\r\n\r\n"), Ok(400));
    let long = format!("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: {}\r\n\r\n", "x".repeat(12_000));
    assert_eq!(status(&long), Ok(200));
    let longer = "x".repeat(100_000);
    // It may be told why, or be cut off while it is still talking.
    let refused = status(&format!("GET /healthz HTTP/1.1\r\nHost: x\r\nX-Long: {longer}\r\n\r\n"));
    assert!(!matches!(refused, Ok(200)), "{refused:?}");
    let answer = get(address, "/healthz");
    for header in ["connection: close", "cache-control: no-store", "x-content-type-options: nosniff"] {
        assert!(answer.head.contains(header), "{header} is missing in {}", answer.head);
    }
    answers_promptly(address);
}

#[test]
fn a_port_that_is_taken_ends_the_start_with_the_address_and_a_hint() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let deployment = alone();
    let replica = deployment.replica().env("RUNNER__ADMIN__LISTEN", address.to_string());
    let mut replica = replica.spawn();
    let status = replica.wait_exit(START);
    assert_eq!(status.code(), Some(1));
    let said = replica.wait_for_line(START, |line| line.starts_with("error: "));
    for word in [&*address.to_string(), "admin.listen", "another program has the port", "in use"] {
        assert!(said.contains(word), "{word:?} is missing in {said}");
    }
}

/// The TCP ports on which a process listens.
pub(crate) fn ports(replica: &Replica) -> Vec<u16> {
    let inodes: Vec<String> = std::fs::read_dir(format!("/proc/{}/fd", replica.pid()))
        .unwrap()
        .filter_map(|entry| {
            let link = std::fs::read_link(entry.ok()?.path()).ok()?;
            Some(link.to_str()?.strip_prefix("socket:[")?.trim_end_matches(']').to_owned())
        })
        .collect();
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let mut ports = Vec::new();
    for line in tables.iter().flat_map(|table| table.lines().skip(1)) {
        let words: Vec<&str> = line.split_whitespace().collect();
        // The state 0A is LISTEN.
        if words[3] == "0A" && inodes.iter().any(|inode| inode == words[9]) {
            let (_, port) = words[1].rsplit_once(':').unwrap();
            ports.push(u16::from_str_radix(port, 16).unwrap());
        }
    }
    ports
}

#[test]
fn without_its_section_nothing_listens() {
    let silent = testbed::Deployment::new(program()).job("tick", Duration::ZERO, "every = \"1s\"");
    let open = alone();
    let (silent_one, open_one) = (silent.replica().spawn(), open.replica().spawn());
    for replica in [&silent_one, &open_one] {
        replica.wait_for_line(START, |line| line.contains("ready"));
    }
    assert_eq!(ports(&silent_one), Vec::<u16>::new());
    assert_eq!(ports(&open_one), [address(&open_one).port()]);
}

/// Says on stderr which metrics it is told of.
struct OwnRecorder;

impl Recorder for OwnRecorder {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, _: SharedString) {
        eprintln!("told of {}", name.as_str());
    }
    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}
    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }
    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }
    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

/// The test starts itself once more: the second process is a user's binary with a recorder of its own.
#[test]
fn a_program_with_a_recorder_of_its_own_keeps_it() {
    const FILE: &str = "ADMIN_TEST_CONFIG";
    if let Some(file) = std::env::var_os(FILE) {
        metrics::set_global_recorder(OwnRecorder).unwrap_or_else(|error| panic!("{error}"));
        let args = ["binary".into(), "--config".into(), file];
        assert_eq!(runner::Runner::builder().main_from(args), std::process::ExitCode::SUCCESS);
        return;
    }
    // A binary under test has no warden of its own, so its only job waits for next year.
    let deployment = testbed::Deployment::new(program()).jobs(
        "[admin]\nlisten = \"127.0.0.1:0\"\n[jobs.yearly]\nschedule = \"0 0 1 1 *\"\nkind = \"command\"\n\
         params = { argv = [\"true\"] }\n",
    );
    let itself = std::env::current_exe().unwrap();
    let builder = Replica::builder(&itself)
        .arg("--exact")
        .arg(testbed::test_name!(a_program_with_a_recorder_of_its_own_keeps_it))
        .arg("--nocapture");
    let mut replica = builder.env(FILE, deployment.config()).cwd(deployment.dir()).spawn();
    let address = address(&replica);
    replica.wait_for_line(START, |line| line.contains("told of runner_firings_total"));
    replica.wait_for_line(START, |line| line.contains("records its metrics itself"));
    assert_eq!(get(address, "/metrics").status, 404);
    wait_until_blocking(START, || match get(address, "/readyz") {
        answer if answer.status == 200 => Ok(()),
        answer => Err(format!("{answer:?}")),
    });
    replica.terminate();
    assert!(replica.wait_exit(START).success(), "{}", replica.lines().tail());
}
