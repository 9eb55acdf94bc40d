//! The command and everything that came from it, as the warden sees them.

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

/// A command and its offspring.
///
/// The command leads a process group. What leaves the group (a daemon, a shell's background job)
/// is still found: the warden is a *subreaper*, so whoever loses its parent becomes the warden's
/// own child, and the kernel says for certain when there are no children left.
#[derive(Debug)]
pub(super) struct Brood {
    command: Pid,
    status: Option<Status>,
    /// The command's number is free for others: its group must not be signalled any more.
    buried: bool,
    others: Vec<Pid>,
    told: HashSet<Pid>,
}

impl Brood {
    /// Starts the command at the head of a group of its own, without input.
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
        Ok(Self { command, status: None, buried: false, others: Vec::new(), told: HashSet::new() })
    }

    /// How the command itself ended, if it has.
    pub(super) fn status(&self) -> Option<Status> {
        self.status
    }

    /// How many processes besides the command are known to live.
    pub(super) fn others(&self) -> usize {
        self.others.len()
    }

    /// Looks who lives. True when everybody is gone.
    pub(super) fn look(&mut self) -> io::Result<bool> {
        if self.status.is_none() {
            // Not reaped: while the dead command keeps its number, so does its group.
            self.status = exited(self.command, WaitIdOptions::NOWAIT)?;
        }
        // After the command: what it leaves behind was handed to us before it could be seen dead.
        self.others.clear();
        for pid in proc::own_children()? {
            if pid != self.command && exited(pid, WaitIdOptions::empty())?.is_none() {
                self.others.push(pid);
            }
        }
        if self.status.is_none() || !self.others.is_empty() {
            return Ok(false);
        }
        if !self.buried {
            exited(self.command, WaitIdOptions::empty())?;
            self.buried = true;
        }
        // The list in /proc may miss somebody while others come and go; this answer cannot.
        match waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT) {
            Err(Errno::CHILD) => Ok(true),
            Err(error) => Err(error.into()),
            Ok(_) => Ok(false),
        }
    }

    /// Asks everybody to end who was not asked before. Who is gone meanwhile needs no signal, and a
    /// process of another user takes none: it is waited for.
    pub(super) fn ask(&mut self) {
        if self.told.insert(self.command) {
            self.signal_group(Signal::TERM);
        }
        for pid in &self.others {
            if self.told.insert(*pid) {
                kill_process(*pid, Signal::TERM).ok();
            }
        }
    }

    /// Ends everybody who is known.
    pub(super) fn kill(&self) {
        self.signal_group(Signal::KILL);
        for pid in &self.others {
            kill_process(*pid, Signal::KILL).ok();
        }
    }

    /// What becomes readable when one of them ends; `None` if the kernel cannot say that of all.
    pub(super) fn ends(&self) -> Option<Vec<OwnedFd>> {
        let command = self.status.is_none().then_some(&self.command);
        let alive = command.into_iter().chain(&self.others);
        alive.map(|pid| pidfd_open(*pid, PidfdFlags::empty()).ok()).collect()
    }

    fn signal_group(&self, signal: Signal) {
        if !self.buried {
            kill_process_group(self.command, signal).ok();
        }
    }
}

/// A warden that gives up lets nothing live on unwatched.
impl Drop for Brood {
    fn drop(&mut self) {
        self.kill();
    }
}

/// How a child ended, if it has. Reaps it, unless the options say not to.
fn exited(pid: Pid, options: WaitIdOptions) -> io::Result<Option<Status>> {
    let options = options | WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let status = waitid(WaitId::Pid(pid), options)?;
    Ok(status.map(|status| told_by(&status)))
}

fn told_by(status: &WaitIdStatus) -> Status {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Status::Exit(code),
        (None, signal) => Status::Signal(signal.unwrap_or_default()),
    }
}
