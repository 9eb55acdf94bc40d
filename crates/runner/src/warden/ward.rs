//! The runner's side of a warden and its command.

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::Pid;
use serde::Serialize;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use super::message::{self, CommandEnd, Order, Report, Task};
use super::refusal::Refusal;
use super::{WARDEN, proc};
use crate::capture::Capture;
use crate::job::JobContext;

/// How long to go on reading output after all known processes of the command have ended.
const DRAIN: Duration = Duration::from_millis(200);

/// How much output is read at once.
const CHUNK: usize = 16 << 10;

/// How often to check whether the session of a dead warden is empty.
const TICK: Duration = Duration::from_millis(10);

/// What to execute as the warden: a program that calls [`warden_main`](super::warden_main) when its
/// first argument is [`WARDEN`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WardenProgram(PathBuf);

impl WardenProgram {
    /// The program that this process runs, also if its file was replaced after the start.
    #[must_use]
    pub fn current_exe() -> Self {
        Self("/proc/self/exe".into())
    }

    /// The program at `path`, for a process that is not a runner itself.
    #[must_use]
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The command line that starts it.
    pub(crate) fn process(&self) -> Command {
        let mut process = Command::new(&self.0);
        process.arg0("runner").arg(WARDEN);
        process
    }
}

impl Default for WardenProgram {
    fn default() -> Self {
        Self::current_exe()
    }
}

/// The runner's connection to a warden. Dropping it closes the pipe, and then the warden ends the command.
#[derive(Debug)]
pub(crate) struct Ward {
    orders: ChildStdin,
    reports: Lines<BufReader<ChildStdout>>,
    output: Option<ChildStderr>,
    warden: Child,
}

/// Why it is not known how the command ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WardError {
    /// The warden did not start, and so the command did not either.
    #[error("cannot start the command's warden")]
    NoWarden(#[source] io::Error),
    /// The command did not start.
    #[error("{}", .0.message)]
    Refused(Refusal),
    /// The warden ended without a report. All processes of its session were killed.
    #[error("the command's warden ended unexpectedly ({0}), so the command was killed")]
    Vanished(String),
}

impl WardError {
    /// Whether another attempt may help.
    pub(crate) fn is_retry(&self) -> bool {
        match self {
            Self::NoWarden(_) | Self::Vanished(_) => true,
            Self::Refused(refusal) => refusal.retry,
        }
    }
}

impl Ward {
    /// Starts a warden. [`tend`](Self::tend) starts the command.
    pub(crate) fn spawn(mut process: Command) -> Result<Self, WardError> {
        process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut warden = process.spawn().map_err(WardError::NoWarden)?;
        let pipes = (warden.stdin.take(), warden.stdout.take(), warden.stderr.take());
        let (Some(orders), Some(reports), Some(output)) = pipes else {
            return Err(WardError::NoWarden(io::ErrorKind::BrokenPipe.into()));
        };
        Ok(Self { orders, reports: BufReader::new(reports).lines(), output: Some(output), warden })
    }

    /// Starts the command, tells the warden about every heartbeat and about a cancellation, and returns when
    /// no process of the command is left.
    ///
    /// # Cancel safety
    /// Dropping it ends the command in the same way, but does not wait for its end.
    pub(crate) async fn tend(
        mut self,
        argv: &[String],
        cwd: Option<&Path>,
        ctx: &JobContext,
        capture: &mut Capture,
    ) -> Result<CommandEnd, WardError> {
        let report = self.follow(argv, cwd, ctx, capture).await;
        drop(self.orders);
        if report.is_none() {
            kill_session_of(&self.warden).await;
        }
        // With a time limit: a process that escaped may keep the pipe open for ever.
        let mut chunk = vec![0; CHUNK];
        let rest = async { while print(&mut self.output, &mut chunk, capture).await {} };
        tokio::time::timeout(DRAIN, rest).await.ok();
        let status = self.warden.wait().await;
        match report {
            Some(Report::Ended(ended)) => Ok(ended),
            Some(Report::Refused(refusal)) => Err(WardError::Refused(refusal)),
            None => Err(WardError::Vanished(status.map_or_else(|e| e.to_string(), |s| s.to_string()))),
        }
    }

    /// Passes messages on until the warden's report; `None` if none came or it could not be read.
    async fn follow(
        &mut self,
        argv: &[String],
        cwd: Option<&Path>,
        ctx: &JobContext,
        capture: &mut Capture,
    ) -> Option<Report> {
        let mut licence = ctx.licence();
        let until = licence.ends().into();
        let task = Task { argv: argv.into(), cwd: cwd.map(Into::into), kill_grace: ctx.kill_grace(), until };
        self.say(&task).await;
        let mut chunk = vec![0; CHUNK];
        let mut stopped = false;
        loop {
            tokio::select! {
                line = self.reports.next_line() => {
                    return line.ok().flatten().and_then(|line| message::read(line.as_bytes()).ok());
                }
                _ = print(&mut self.output, &mut chunk, capture), if self.output.is_some() => {}
                _ = ctx.cancelled(), if !stopped => {
                    stopped = true;
                    self.say(&Order::Stop).await;
                }
                // If nothing renews the licence any more, the warden's last deadline stays.
                until = licence.moved() => self.say(&Order::Until(until.into())).await,
            }
        }
    }

    /// Writes one message. An error does not matter: if the warden is gone, its reports end.
    async fn say(&mut self, message: &impl Serialize) {
        if let Ok(line) = message::line(message) {
            self.orders.write_all(&line).await.ok();
        }
    }
}

/// Reads the next output into `capture`. At the end of the output it closes the pipe and returns false.
async fn print(output: &mut Option<ChildStderr>, chunk: &mut [u8], capture: &mut Capture) -> bool {
    let Some(pipe) = output else { return false };
    match pipe.read(chunk).await {
        Ok(length) if length > 0 => {
            capture.push(&chunk[..length]);
            true
        }
        _ => {
            *output = None;
            false
        }
    }
}

/// Kills every process in a dead warden's session. No other session can have the same number, because the
/// warden has not been reaped yet.
async fn kill_session_of(warden: &Child) {
    let session = warden.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
    while session.is_some_and(|session| proc::kill_session(session).is_ok_and(|alive| alive > 0)) {
        tokio::time::sleep(TICK).await;
    }
}
