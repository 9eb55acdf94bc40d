//! A private Redis for one test: own port, own directory, nothing persisted, killed on drop.

#![expect(clippy::expect_used, clippy::panic, reason = "a rig that is broken must fail the test at once")]

use std::fs::{File, read_to_string};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use uuid::Uuid;

use crate::lock_watch::{FOLLOWS, LEADS};

const POLL: Duration = Duration::from_millis(5);
/// How often to poll for the start of a server before it counts as failed: ten seconds in all.
const POLLS: u32 = 2_000;

/// A `redis-server` that belongs to one test.
///
/// Methods block their thread for some milliseconds, and panic when the server does not obey.
#[derive(Debug)]
pub struct PrivateRedis {
    port: u16,
    dir: TempDir,
    /// `None` while it is killed.
    child: Mutex<Option<Child>>,
}

impl PrivateRedis {
    /// Starts a server and waits until it answers.
    ///
    /// # Panics
    /// When `redis-server` is not installed, or does not come up.
    #[must_use]
    pub fn start() -> Self {
        let dir = tempfile::tempdir().expect("a temporary directory");
        for _ in 0..50 {
            let port = random_port();
            if let Ok(child) = launch(port, dir.path()) {
                return Self { port, dir, child: Mutex::new(Some(child)) };
            }
        }
        panic!("no free port in 50 tries; last log:\n{}", log_of(dir.path()));
    }

    /// Its URL. It stays the same after [`kill`](Self::kill) and [`restart`](Self::restart).
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }

    /// The same, as a socket address: for proxies.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        address(self.port)
    }

    /// Kills it with SIGKILL; its keys are gone. Connections break, new ones are refused.
    pub fn kill(&self) {
        if let Some(mut child) = self.child().take() {
            child.kill().expect("SIGKILL to our own child");
            child.wait().expect("the end of our own child");
        }
    }

    /// Starts it again, empty, on the same port; kills it first if it runs.
    pub fn restart(&self) {
        self.kill();
        match launch(self.port, self.dir.path()) {
            Ok(child) => *self.child() = Some(child),
            Err(PortTaken) => panic!("another process took port {} while Redis was down", self.port),
        }
    }

    /// Freezes it with SIGSTOP: connections stay open, the kernel accepts new ones, nothing is answered.
    pub fn stop(&self) {
        self.signal(Signal::STOP);
    }

    /// Wakes it after [`stop`](Self::stop).
    pub fn cont(&self) {
        self.signal(Signal::CONT);
    }

    /// Deletes every key, as an operator's mistake or a failover to an empty server would.
    pub fn flushall(&self) {
        self.call(&["FLUSHALL"]);
    }

    /// Makes it a replica of the server at `primary`, and waits until it has copied the keys. A proxy in between
    /// can make it lag.
    ///
    /// # Panics
    /// When the link does not come up within ten seconds.
    pub fn follow(&self, primary: SocketAddr) {
        self.call(&["ECHO", FOLLOWS]);
        self.call(&["REPLICAOF", &primary.ip().to_string(), &primary.port().to_string()]);
        for _ in 0..POLLS {
            let info = self.call(&["INFO", "replication"]).unwrap_or_default();
            if info.contains("master_link_status:up") {
                return;
            }
            sleep(POLL);
        }
        panic!("no link to the primary; log:\n{}", log_of(self.dir.path()));
    }

    /// Makes a replica a primary, with the keys that have reached it.
    pub fn promote(&self) {
        self.call(&["REPLICAOF", "NO", "ONE"]);
        self.call(&["ECHO", LEADS]);
    }

    /// Sends one command on a connection of its own; `None` for nil, arrays joined by line breaks.
    ///
    /// # Panics
    /// When the server answers with an error, or not at all within five seconds.
    pub fn call(&self, command: &[&str]) -> Option<String> {
        call(self.port, command).unwrap_or_else(|error| panic!("{command:?}: {error}"))
    }

    fn signal(&self, signal: Signal) {
        let child = self.child();
        let id = child.as_ref().map(Child::id).expect("a running redis-server");
        let pid = i32::try_from(id).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("a signal to our own child");
    }

    fn child(&self) -> MutexGuard<'_, Option<Child>> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for PrivateRedis {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Another process uses the port that we wanted.
struct PortTaken;

/// Starts a server and waits until it is *this* server that answers on the port.
fn launch(port: u16, dir: &Path) -> Result<Child, PortTaken> {
    let log = File::create(dir.join("redis.log")).expect("a log file");
    let mut child = Command::new("redis-server")
        .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--protected-mode", "no"])
        .args([
            "--save",
            "",
            "--appendonly",
            "no",
            "--daemonize",
            "no",
            "--repl-diskless-sync-delay",
            "0",
            "--dir",
        ])
        .arg(dir)
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a log file"))
        .stderr(log)
        .spawn()
        .unwrap_or_else(|error| match error.kind() {
            ErrorKind::NotFound => panic!("redis-server is not installed: apt-get install redis-server"),
            _ => panic!("redis-server does not start: {error}"),
        });
    let ours = format!("process_id:{}\r", child.id());
    for _ in 0..POLLS {
        if child.try_wait().expect("the state of our own child").is_some() {
            return Err(PortTaken);
        }
        // Another server on the port would answer too. Only the process id shows which one it is.
        if call(port, &["INFO", "server"]).is_ok_and(|info| info.is_some_and(|i| i.contains(&ours))) {
            return Ok(child);
        }
        sleep(POLL);
    }
    child.kill().expect("SIGKILL to our own child");
    child.wait().expect("the end of our own child");
    panic!("redis-server does not answer on port {port}; its log:\n{}", log_of(dir));
}

fn log_of(dir: &Path) -> String {
    read_to_string(dir.join("redis.log")).unwrap_or_else(|error| error.to_string())
}

/// A port below the ephemeral range, so that neither a client's socket nor a test that binds port 0
/// takes it while the server is down.
fn random_port() -> u16 {
    let (random, _) = Uuid::new_v4().as_u64_pair();
    let offset = u16::try_from(random % 20_000).expect("below 20 000");
    11_000 + offset
}

fn address(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// Sends one command and reads one reply, without the Redis client that the tests test.
fn call(port: u16, command: &[&str]) -> std::io::Result<Option<String>> {
    let limit = Duration::from_secs(5);
    let mut stream = TcpStream::connect_timeout(&address(port), limit)?;
    stream.set_read_timeout(Some(limit))?;
    let mut request = format!("*{}\r\n", command.len());
    for part in command {
        request.push_str(&format!("${}\r\n{part}\r\n", part.len()));
    }
    stream.write_all(request.as_bytes())?;
    reply(&mut BufReader::new(stream))
}

fn reply(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<String>> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let line = line.trim_end();
    let (kind, rest) = line.split_at_checked(1).ok_or(ErrorKind::UnexpectedEof)?;
    let length = || rest.parse::<i64>().map_err(std::io::Error::other);
    match kind {
        "+" | ":" => Ok(Some(rest.into())),
        "$" | "*" if length()? < 0 => Ok(None),
        "$" => {
            let mut body = vec![0; usize::try_from(length()? + 2).map_err(std::io::Error::other)?];
            stream.read_exact(&mut body)?;
            body.truncate(body.len() - 2);
            String::from_utf8(body).map(Some).map_err(std::io::Error::other)
        }
        "*" => {
            let parts = (0..length()?).map(|_| reply(stream)).collect::<Result<Vec<_>, _>>()?;
            Ok(Some(parts.into_iter().flatten().collect::<Vec<_>>().join("\n")))
        }
        "-" => Err(std::io::Error::other(rest.to_owned())),
        _ => Err(std::io::Error::other(format!("no reply of Redis: {line}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_comes_up_empty_again_on_its_port() {
        let redis = PrivateRedis::start();
        redis.call(&["SET", "a", "1"]);
        assert_eq!(redis.call(&["GET", "a"]).as_deref(), Some("1"));
        redis.kill();
        assert_eq!(TcpStream::connect(redis.addr()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
        redis.restart();
        assert_eq!(redis.call(&["GET", "a"]), None);
    }

    #[test]
    fn flushall_deletes_every_key() {
        let redis = PrivateRedis::start();
        redis.call(&["MSET", "a", "1", "b", "2"]);
        redis.flushall();
        assert_eq!(redis.call(&["DBSIZE"]).as_deref(), Some("0"));
    }

    #[test]
    fn a_frozen_server_answers_after_it_goes_on() {
        let redis = PrivateRedis::start();
        redis.stop();
        let mut stream = TcpStream::connect(redis.addr()).unwrap();
        stream.write_all(b"PING\r\n").unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        assert!(stream.read(&mut [0; 16]).is_err());
        redis.cont();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(reply(&mut BufReader::new(stream)).unwrap().as_deref(), Some("PONG"));
    }

    #[test]
    fn a_promoted_replica_has_what_reached_it_and_the_demoted_primary_takes_no_writes() {
        let (old, new) = (PrivateRedis::start(), PrivateRedis::start());
        let path = crate::Proxy::new(old.addr());
        old.call(&["SET", "early", "1"]);
        new.follow(path.address());
        path.set(crate::Mode::Stall);
        old.call(&["SET", "late", "1"]);
        new.promote();
        assert_eq!(new.call(&["GET", "early"]).as_deref(), Some("1"));
        assert_eq!(new.call(&["GET", "late"]), None);
        new.call(&["SET", "own", "1"]);
        old.follow(new.addr());
        let refused = call(old.port, &["SET", "a", "1"]).unwrap_err();
        assert!(refused.to_string().starts_with("READONLY"), "{refused}");
    }

    #[test]
    fn a_dropped_server_is_gone() {
        let redis = PrivateRedis::start();
        let addr = redis.addr();
        drop(redis);
        assert!(TcpStream::connect(addr).is_err());
    }
}
