//! One real process of the product. A test can read its log and send it signals.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use tempfile::NamedTempFile;
use uuid::Uuid;

use crate::{Lines, wait_until_blocking};

/// An environment variable that all descendants of a replica inherit, also when they change their group or their
/// parent. It is used to find the processes that a replica left.
const MARKER: &str = "TESTBED_REPLICA";
/// How long to wait for the last lines of a process that has ended.
const LAST_OUTPUT: Duration = Duration::from_secs(1);
/// Where Debian's `faketime` package puts its library, below `/usr/lib/<architecture>`.
const FAKETIME: &str = "faketime/libfaketimeMT.so.1";

/// A replica that is not started yet.
#[derive(Debug)]
pub struct ReplicaBuilder {
    command: Command,
    clock: Option<NamedTempFile>,
    output: Option<OwnedFd>,
}

impl ReplicaBuilder {
    /// Adds `--config PATH`.
    #[must_use]
    pub fn config(mut self, path: &Path) -> Self {
        self.command.arg("--config").arg(path);
        self
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Sets a variable of its environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Starts it in `dir`.
    #[must_use]
    pub fn cwd(mut self, dir: &Path) -> Self {
        self.command.current_dir(dir);
        self
    }

    /// Moves its wall clock (`"+1h"`, `"-30s"`) but not its monotonic clocks, as a wrong NTP server does.
    /// [`Replica::set_clock`] moves it again later.
    ///
    /// # Panics
    /// When the faketime library is not installed.
    #[must_use]
    pub fn faketime(mut self, offset: &str) -> Self {
        let clock = NamedTempFile::new().expect("a temporary file for the faked clock");
        write_clock(clock.path(), offset);
        self.command
            .env("LD_PRELOAD", faketime_library())
            .env("FAKETIME_TIMESTAMP_FILE", clock.path())
            .env("FAKETIME_NO_CACHE", "1")
            .env("FAKETIME_DONT_FAKE_MONOTONIC", "1");
        self.clock = Some(clock);
        self
    }

    /// Has it write stdout and stderr to `output`. Then [`Replica::lines`] stays empty.
    #[must_use]
    pub fn output(mut self, output: impl Into<OwnedFd>) -> Self {
        self.output = Some(output.into());
        self
    }

    /// Starts the process.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn spawn(mut self) -> Replica {
        let marker = Uuid::new_v4().simple().to_string();
        // It stays in the process group of the test, so ending a hanging test ends its replicas too.
        self.command.env(MARKER, &marker).stdin(Stdio::null());
        let outputs = self.output.map(|output| (output.try_clone().expect("a file descriptor"), output));
        match outputs {
            Some((stdout, stderr)) => self.command.stdout(stdout).stderr(stderr),
            None => self.command.stdout(Stdio::piped()).stderr(Stdio::piped()),
        };
        let started = self.command.spawn();
        let mut child = started.unwrap_or_else(|error| panic!("cannot start {:?}: {error}", self.command));
        let lines = Lines::default();
        if let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) {
            lines.follow(stdout);
            lines.follow(stderr);
        }
        // It holds the descriptors that the child was given, and a pipe ends when its last writer is gone.
        drop(self.command);
        Replica { child, ended: None, lines, marker, clock: self.clock }
    }
}

/// A running process of the product. It and all its descendants are killed on drop.
#[derive(Debug)]
pub struct Replica {
    child: Child,
    ended: Option<ExitStatus>,
    lines: Lines,
    marker: String,
    clock: Option<NamedTempFile>,
}

impl Replica {
    /// A replica of the program at `bin`. It inherits no setting of the product from the test's environment.
    #[must_use]
    pub fn builder(bin: &Path) -> ReplicaBuilder {
        let mut command = Command::new(bin);
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"RUNNER_") {
                command.env_remove(name);
            }
        }
        ReplicaBuilder { command, clock: None, output: None }
    }

    /// Its process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The lines that it wrote to stdout and stderr.
    #[must_use]
    pub fn lines(&self) -> &Lines {
        &self.lines
    }

    /// The first line since its start that `wanted` accepts. Waits for it if necessary. To search later lines
    /// only, use `lines().mark()` and then `lines().wait_for(mark, …)`.
    ///
    /// # Panics
    /// At the deadline, and as soon as its output has ended without such a line.
    #[track_caller]
    pub fn wait_for_line(&self, deadline: Duration, wanted: impl Fn(&str) -> bool) -> String {
        self.lines.wait_for(0, deadline, wanted)
    }

    /// Freezes it (SIGSTOP), and returns when it has stopped. Its children go on.
    pub fn stop(&mut self) {
        self.signal(Signal::STOP);
        // Waits for the event: a thread in the middle of a write stops a little later than the signal.
        let seen = WaitIdOptions::STOPPED | WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        rustix::process::waitid(WaitId::Pid(self.kernel_pid()), seen)
            .expect("our own child can be waited for");
    }

    /// Wakes it (SIGCONT).
    pub fn cont(&mut self) {
        self.signal(Signal::CONT);
    }

    /// Asks it to end (SIGTERM).
    pub fn terminate(&mut self) {
        self.signal(Signal::TERM);
    }

    /// Kills the process itself (SIGKILL), none of its descendants, and waits until it is gone.
    pub fn kill9(&mut self) {
        self.signal(Signal::KILL);
        self.ended = Some(self.child.wait().expect("our own child can be waited for"));
    }

    /// Whether it still runs.
    #[must_use]
    pub fn is_running(&mut self) -> bool {
        self.poll_exit().is_none()
    }

    /// Waits for its end and for all its output, and returns its exit status.
    ///
    /// # Panics
    /// At the deadline, with its last lines.
    #[track_caller]
    pub fn wait_exit(&mut self, deadline: Duration) -> ExitStatus {
        let status = wait_until_blocking(deadline, || {
            self.poll_exit().ok_or_else(|| format!("it still runs; its last lines:\n{}", self.lines.tail()))
        });
        self.lines.wait_ended(LAST_OUTPUT);
        status
    }

    /// Its living descendants, without itself.
    #[must_use]
    pub fn descendants(&self) -> Vec<u32> {
        let own = self.pid().to_string();
        let needle = format!("{MARKER}={}", self.marker).into_bytes();
        let processes = std::fs::read_dir("/proc").expect("/proc can be read");
        let ours = |pid: &str| {
            // A process that ends meanwhile, or that we may not read, is not one of ours.
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            pid != own && environment.split(|byte| *byte == 0).any(|entry| entry == needle)
        };
        processes
            .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
            .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()) && ours(name))
            .filter_map(|pid| pid.parse().ok())
            .collect()
    }

    /// Moves the wall clock of a replica that was started with [`ReplicaBuilder::faketime`].
    ///
    /// # Panics
    /// When the replica was started without it.
    pub fn set_clock(&mut self, offset: &str) {
        let clock = self.clock.as_ref().expect("a replica whose clock moves is built with faketime()");
        write_clock(clock.path(), offset);
    }

    fn poll_exit(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().expect("our own child can be waited for");
        }
        self.ended
    }

    /// Sends it any signal.
    pub fn signal(&mut self, signal: Signal) {
        // After the process was reaped, another process may have its pid.
        let ended = self.poll_exit();
        assert!(ended.is_none(), "cannot send {signal:?}: it ended, {ended:?}\n{}", self.lines.tail());
        // It may end at this moment, but until we reap it no other process gets its pid.
        rustix::process::kill_process(self.kernel_pid(), signal).expect("our own child takes signals");
    }

    fn kernel_pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Kills the processes that it left. True if there were any.
    fn kill_descendants(&self) -> bool {
        let left = self.descendants();
        for pid in &left {
            let kernel_pid = i32::try_from(*pid).ok().and_then(Pid::from_raw);
            // An error means that the process has ended meanwhile, which is what we want.
            kernel_pid.and_then(|pid| rustix::process::kill_process(pid, Signal::KILL).ok());
            forget_clock(*pid);
        }
        !left.is_empty()
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the last lines of replica {}:\n{}", self.pid(), self.lines.tail());
        }
        if self.poll_exit().is_none() {
            self.kill9();
        }
        forget_clock(self.pid());
        // A process may fork while we kill, so this repeats. With the replica dead, a few rounds are enough.
        for _ in 0..100 {
            if !self.kill_descendants() {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

// === The files of libfaketime ===

fn faketime_library() -> PathBuf {
    let architectures = std::fs::read_dir("/usr/lib").expect("/usr/lib can be read");
    architectures
        .filter_map(|entry| Some(entry.ok()?.path().join(FAKETIME)))
        .find(|path| path.exists())
        .expect("libfaketime is missing: apt-get install faketime")
}

/// Removes the files that libfaketime created for a process: a killed process could not do it itself.
fn forget_clock(pid: u32) {
    for name in ["faketime_shm", "sem.faketime_sem"] {
        // The file does not exist if no clock was faked, or if the process removed it itself.
        std::fs::remove_file(format!("/dev/shm/{name}_{pid}")).ok();
    }
}

/// Replaces the file in one step, because the replica may read it at any moment.
fn write_clock(path: &Path, offset: &str) {
    let mut next: OsString = path.into();
    next.push(".next");
    let mut file = std::fs::File::create(&next).expect("a temporary file for the faked clock");
    writeln!(file, "{offset}").expect("a temporary file for the faked clock");
    std::fs::rename(&next, path).expect("a temporary file for the faked clock");
}
