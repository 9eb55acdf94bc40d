//! The command and its descendants, as the warden sees them.

use std::collections::HashSet;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process, kill_process_group,
    pidfd_open, waitid,
};

use super::message::Status;
use super::proc;

/// A command and its descendants.
///
/// The command leads a process group. Processes that leave the group (a daemon, a shell's background job) are
/// still found: the warden is a *subreaper*, so a process whose parent exits becomes a child of the warden.
/// And the kernel tells reliably when no children are left.
#[derive(Debug)]
pub(super) struct Brood {
    command: Pid,
    status: Option<Status>,
    /// The command was reaped. Another process may get its pid, so its group must not be signalled any more.
    reaped: bool,
    others: Vec<Pid>,
    /// Processes that were sent SIGTERM.
    terminated: HashSet<Pid>,
}

impl Brood {
    /// Starts the command as the leader of a new process group, without input.
    pub(super) fn start(argv: &[String], output: [OwnedFd; 2]) -> io::Result<Self> {
        let (program, args) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let [stdout, stderr] = output;
        let child = std::process::Command::new(program)
            .args(args)
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .process_group(0)
            .spawn()?;
        let command = i32::try_from(child.id()).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::Other)?;
        Ok(Self { command, status: None, reaped: false, others: Vec::new(), terminated: HashSet::new() })
    }

    /// How the command itself ended, if it has.
    pub(super) fn status(&self) -> Option<Status> {
        self.status
    }

    /// How many processes besides the command were alive at the last look.
    pub(super) fn others(&self) -> usize {
        self.others.len()
    }

    /// Checks which processes are alive. True when there is none.
    pub(super) fn look(&mut self) -> io::Result<bool> {
        if self.status.is_none() {
            // Not reaped yet: while the dead command keeps its pid, its group keeps its number too.
            self.status = exited(self.command, WaitIdOptions::NOWAIT)?;
        }
        // After the check of the command: when the command is seen dead, the kernel has already made the
        // processes that it left our children.
        self.others.clear();
        for pid in proc::own_children()? {
            if pid != self.command && exited(pid, WaitIdOptions::empty())?.is_none() {
                self.others.push(pid);
            }
        }
        if self.status.is_none() || !self.others.is_empty() {
            return Ok(false);
        }
        if !self.reaped {
            exited(self.command, WaitIdOptions::empty())?;
            self.reaped = true;
        }
        // The list in /proc may miss a process while others start and end. `waitid` misses none.
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT) {
            Err(Errno::CHILD) => Ok(true),
            Err(error) => Err(error.into()),
            Ok(_) => Ok(false),
        }
    }

    /// Sends SIGTERM to every process that did not get it yet. Errors do not matter: a process that has ended
    /// needs no signal. A process of another user cannot be signalled, and the warden waits for it.
    pub(super) fn terminate(&mut self) {
        if self.terminated.insert(self.command) {
            self.signal_group(Signal::TERM);
        }
        for pid in &self.others {
            if self.terminated.insert(*pid) {
                kill_process(*pid, Signal::TERM).ok();
            }
        }
    }

    /// Sends SIGKILL to every known process.
    pub(super) fn kill(&self) {
        self.signal_group(Signal::KILL);
        for pid in &self.others {
            kill_process(*pid, Signal::KILL).ok();
        }
    }

    /// Descriptors that become readable when a process ends; `None` if the kernel does not give one for each.
    pub(super) fn ends(&self) -> Option<Vec<OwnedFd>> {
        let command = self.status.is_none().then_some(&self.command);
        let alive = command.into_iter().chain(&self.others);
        alive.map(|pid| pidfd_open(*pid, PidfdFlags::empty()).ok()).collect()
    }

    fn signal_group(&self, signal: Signal) {
        if !self.reaped {
            kill_process_group(self.command, signal).ok();
        }
    }
}

/// If the warden fails, no process of the command may go on without one.
impl Drop for Brood {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a child ended, if it has. Reaps it, unless the options say not to.
fn exited(pid: Pid, options: WaitIdOptions) -> io::Result<Option<Status>> {
    let options = options | WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let status = waitid(WaitId::Pid(pid), options)?;
    Ok(status.map(|status| status_of(&status)))
}

fn status_of(status: &WaitIdStatus) -> Status {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Status::Exit(code),
        (None, signal) => Status::Signal(signal.unwrap_or_default()),
    }
}
