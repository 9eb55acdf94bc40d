//! A private PostgreSQL server for a test: own directory, loopback and Unix socket, ended on drop.
//!
//! The database directory is initialised once and kept as a template below the build's target folder. Each server
//! gets a copy, because `initdb` takes longer than most tests.

#![expect(clippy::panic, reason = "a test without its server has failed, and should say why")]
#![expect(clippy::disallowed_methods, reason = "the rig reads PATH and waits by the host's clock")]

mod pgbouncer;
mod standby;
mod template;

use std::fs::{self, File};

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;
use uuid::Uuid;

pub use self::pgbouncer::PrivatePgBouncer;
pub(crate) use self::template::cache_folder;
pub use self::template::program;
use self::template::{ServerUser, copy_template, initialise, run, server_user};

/// The environment variable with the port of a server that another process lends.
const LENT: &str = "TESTBED_POSTGRES_PORT";

/// How long any step of the server may take before the test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// A running PostgreSQL server. Dropping it ends the server and removes its directory. If the test process is
/// killed, a small shell that waits for the end of the process does both.
#[derive(Debug)]
pub struct PrivatePostgres {
    home: TempDir,
    port: u16,
    user: Option<ServerUser>,
    /// Beyond [`SETTINGS`].
    settings: Vec<String>,
    process: Mutex<Option<Process>>,
}

/// The server, and the shell that ends it if the test process is killed.
#[derive(Debug)]
struct Process {
    server: Child,
    undertaker: Child,
    paused: bool,
}

impl PrivatePostgres {
    /// Starts a server and waits until it answers.
    ///
    /// # Panics
    /// When PostgreSQL's programs are missing (the message says what to install) or the server does not come up.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(Vec::new(), copy_template)
    }

    /// Like [`Self::start`], but with a cluster id of its own. All other servers are copies with the same id.
    ///
    /// # Panics
    /// As [`Self::start`].
    #[must_use]
    pub fn start_elsewhere() -> Self {
        Self::start_with(Vec::new(), initialise)
    }

    /// Starts a server with these settings in a directory that `fill` creates.
    fn start_with(settings: Vec<String>, fill: impl FnOnce(&Path, Option<ServerUser>)) -> Self {
        let user = server_user();
        let home =
            TempDir::with_prefix("runner-pg-").unwrap_or_else(|e| panic!("no temporary directory: {e}"));
        if let Some(user) = user {
            chown(home.path(), Some(user.uid), Some(user.gid)).unwrap_or_else(|e| {
                panic!("cannot give {} to the server's user: {e}", home.path().display())
            });
        }
        fill(&home.path().join("data"), user);
        let mut postgres = Self { home, port: free_port(), user, settings, process: Mutex::new(None) };
        let deadline = Instant::now() + PATIENCE;
        while let Err(log) = postgres.launch() {
            let port_taken = log.contains("could not bind") && Instant::now() < deadline;
            assert!(port_taken, "PostgreSQL did not start:\n{log}");
            postgres.port = free_port();
        }
        postgres
    }

    /// The server that all tests of this process may share. Each test has a database of its own.
    #[must_use]
    pub fn shared() -> &'static Self {
        static SHARED: OnceLock<PrivatePostgres> = OnceLock::new();
        SHARED.get_or_init(|| Self::lent().unwrap_or_else(Self::start))
    }

    /// Lets the tests that `command` runs use this server instead of starting one.
    pub(crate) fn lend_to(&self, command: &mut Command) {
        command.env(LENT, self.port.to_string());
    }

    /// The server that another process lends to this one. The other process ends it.
    fn lent() -> Option<Self> {
        let port = std::env::var(LENT).ok()?.parse().unwrap_or_else(|e| panic!("{LENT}: {e}"));
        let home =
            TempDir::with_prefix("runner-pg-").unwrap_or_else(|e| panic!("no temporary directory: {e}"));
        Some(Self { home, port, user: None, settings: Vec::new(), process: Mutex::new(None) })
    }

    /// The TCP port on loopback. It stays the same after [`Self::stop`] and [`Self::start_again`].
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The directory of the Unix socket.
    #[must_use]
    pub fn socket_dir(&self) -> &Path {
        self.home.path()
    }

    /// The URL of the server's own `postgres` database, over TCP.
    #[must_use]
    pub fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The URL of a database that exists, over TCP.
    #[must_use]
    pub fn url_of(&self, database: &str) -> String {
        format!("postgres://postgres@127.0.0.1:{}/{database}", self.port)
    }

    /// Creates an empty database and returns its URL.
    ///
    /// # Panics
    /// When the server refuses.
    #[must_use]
    pub fn create_database(&self) -> String {
        let name = format!("t{}", Uuid::new_v4().simple());
        self.sql(&format!("CREATE DATABASE {name} TEMPLATE template0"));
        self.url_of(&name)
    }

    /// Runs statements in the database `postgres` and returns what `psql` prints (unaligned, rows only).
    ///
    /// # Panics
    /// When a statement fails.
    pub fn sql(&self, statements: &str) -> String {
        Self::sql_at(&self.url(), statements)
    }

    /// Runs statements in the database behind `url`.
    ///
    /// # Panics
    /// When a statement fails.
    pub fn sql_at(url: &str, statements: &str) -> String {
        let mut psql = Command::new(program("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", statements]);
        text(run(&mut psql)).trim_end().to_owned()
    }

    /// Ends the server at once, as a crash would (immediate shutdown: the next start recovers).
    pub fn stop(&self) {
        if let Some(process) = self.lock().take() {
            process.end(Signal::QUIT);
        }
    }

    /// Ends the server as an operator does (fast shutdown): sessions are ended, transactions are rolled back.
    pub fn shut_down(&self) {
        if let Some(process) = self.lock().take() {
            process.end(Signal::INT);
        }
    }

    /// Ends all other sessions, and returns how many there were.
    ///
    /// # Panics
    /// When the server refuses.
    pub fn end_sessions(&self) -> usize {
        let ended = self.sql(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()",
        );
        ended.parse().unwrap_or_else(|error| panic!("{ended:?}: {error}"))
    }

    /// Starts the server again on the same port and directory.
    ///
    /// # Panics
    /// When it does not come up, or was not stopped.
    pub fn start_again(&self) {
        assert!(self.lock().is_none(), "the server still runs");
        let deadline = Instant::now() + PATIENCE;
        while let Err(log) = self.launch() {
            let again = log.contains("could not bind") && Instant::now() < deadline;
            assert!(again, "PostgreSQL did not start again:\n{log}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Freezes the server and all its sessions, with all sockets open, like a network that drops every packet.
    pub fn pause(&self) {
        if let Some(process) = self.lock().as_mut() {
            process.pause();
        }
    }

    /// Wakes a frozen server.
    pub fn resume(&self) {
        if let Some(process) = self.lock().as_mut() {
            process.resume();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Process>> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts the server process. On failure, returns its log.
    fn launch(&self) -> Result<(), String> {
        let log = self.home.path().join("log");
        let output = File::create(&log).map_err(|e| e.to_string())?;
        let mut command = Command::new(program("postgres"));
        if let Some(user) = self.user {
            command.uid(user.uid).gid(user.gid);
        }
        command
            .arg("-D")
            .arg(self.home.path().join("data"))
            .args(["-p", &self.port.to_string(), "-k"])
            .arg(self.home.path())
            .args(SETTINGS.iter().flat_map(|setting| ["-c", setting]))
            .args(self.settings.iter().flat_map(|setting| ["-c", setting]))
            .current_dir(self.home.path())
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(output);
        let server = command.spawn().map_err(|e| e.to_string())?;
        let undertaker = undertaker(server.id(), self.home.path());
        let mut process = Process { server, undertaker, paused: false };
        let deadline = Instant::now() + PATIENCE;
        while !self.is_ready(process.server.id()) {
            let ended = process.server.try_wait().ok().flatten();
            if ended.is_some() || Instant::now() > deadline {
                process.end(Signal::QUIT);
                return Err(fs::read_to_string(&log).unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        *self.lock() = Some(process);
        Ok(())
    }

    /// The server writes its process id into the first line of this file and its status into the last.
    fn is_ready(&self, pid: u32) -> bool {
        let status = fs::read_to_string(self.home.path().join("data/postmaster.pid")).unwrap_or_default();
        let mut lines = status.lines();
        lines.next() == Some(pid.to_string().as_str()) && lines.last().is_some_and(|l| l.trim() == "ready")
    }
}

impl Drop for PrivatePostgres {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Real durability (`fsync` stays on); everything else is small.
const SETTINGS: &[&str] = &[
    "listen_addresses=127.0.0.1",
    "max_connections=200",
    "shared_buffers=16MB",
    "max_wal_size=64MB",
    "dynamic_shared_memory_type=mmap",
    "log_min_messages=warning",
    // For standbys: one that lags still finds the log that it needs, and one that lost its connection connects
    // again at once.
    "wal_keep_size=64MB",
    "wal_retrieve_retry_interval=100ms",
];

impl Process {
    fn pause(&mut self) {
        // The postmaster first, so that it starts no new session after we have listed the sessions.
        signal(self.server.id(), Signal::STOP);
        for session in children(self.server.id()) {
            signal(session, Signal::STOP);
        }
        self.paused = true;
    }

    fn resume(&mut self) {
        for session in children(self.server.id()) {
            signal(session, Signal::CONT);
        }
        signal(self.server.id(), Signal::CONT);
        self.paused = false;
    }

    fn end(mut self, shutdown: Signal) {
        if self.paused {
            self.resume();
        }
        end_child(&mut self.undertaker);
        let sessions = children(self.server.id());
        signal(self.server.id(), shutdown);
        let deadline = Instant::now() + Duration::from_secs(5);
        while matches!(self.server.try_wait(), Ok(None)) {
            if Instant::now() > deadline {
                for session in sessions {
                    signal(session, Signal::KILL);
                }
                return end_child(&mut self.server);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A shell that waits for the end of a pipe which only this process holds. When this process ends, the shell ends
/// the server and removes its files.
fn undertaker(server: u32, home: &Path) -> Child {
    const SCRIPT: &str = r#"
        read -r _
        kill -CONT $(cat "/proc/$1/task/$1/children") "$1"
        kill -QUIT "$1"
        for _ in 1 2 3 4 5 6 7 8 9 10; do kill -0 "$1" && sleep 0.2; done
        kill -KILL "$1"
        for _ in 1 2 3 4 5; do rm -rf "$2" && break; sleep 0.2; done"#;
    Command::new("sh")
        .args(["-c", SCRIPT, "sh", &server.to_string()])
        .arg(home)
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|e| panic!("cannot start a shell: {e}"))
}

fn end_child(child: &mut Child) {
    // Both calls fail only for a process that has already ended.
    child.kill().unwrap_or_default();
    drop(child.wait());
}

/// The processes that `pid` started. Each session of the server is one, in a process group of its own.
fn children(pid: u32) -> Vec<u32> {
    let listed = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    listed.split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It fails only for a process that has already ended.
        kill_process(pid, signal).unwrap_or_default();
    }
}

/// A free port below the range that the kernel uses for outgoing connections. So no other socket gets it by chance
/// while the server is stopped.
fn free_port() -> u16 {
    for _ in 0..1000 {
        let [a, b, ..] = *Uuid::new_v4().as_bytes();
        let port = 20_000 + u16::from_be_bytes([a, b]) % 12_000;
        if std::net::TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("no free port on loopback")
}

fn text(output: Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}
