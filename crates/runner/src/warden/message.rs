//! The messages between runner and warden: one JSON value per line, on two pipes.
//!
//! The first line to the warden is a [`Task`]; [`Order`]s follow. The warden answers with one [`Report`].
//! The end of a pipe is a message too: the other side is gone.

use std::fmt::{self, Display};
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use lockcore::BootInstant;
use serde::{Deserialize, Serialize};

use super::refusal::Refusal;

/// What to run and for how long. The command inherits the environment of the warden, which the runner has set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Task {
    pub(crate) argv: Vec<String>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) kill_grace: Duration,
    pub(crate) until: Moment,
}

/// What the runner sends while the command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Order {
    /// A heartbeat was acknowledged: the command may run until this moment.
    Until(Moment),
    /// End the command.
    Stop,
}

/// What the warden sends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Report {
    /// The command did not start.
    Refused(Refusal),
    /// The command and all its descendants have ended.
    Ended(CommandEnd),
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct CommandEnd {
    /// How the command itself ended.
    pub(crate) status: Status,
    /// The warden ended it because no heartbeat moved the deadline in time.
    pub(crate) licence_ended: bool,
    /// How many processes outlived the command and had to be ended.
    pub(crate) left_behind: usize,
}

/// How a process ended. No number has a second meaning: 127 is an exit status of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Status {
    /// It exited with this status.
    Exit(i32),
    /// This signal killed it.
    Signal(i32),
}

impl Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exit(code) => write!(f, "exit status {code}"),
            Self::Signal(number) => {
                write!(f, "killed by signal {number}")?;
                let name = usize::try_from(number - 1).ok().and_then(|index| SIGNALS.get(index));
                name.map_or(Ok(()), |name| write!(f, " (SIG{name})"))
            }
        }
    }
}

const SIGNALS: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
    "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
    "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// A moment on the boot clock, which is the same for both processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Moment(Duration);

impl From<BootInstant> for Moment {
    fn from(instant: BootInstant) -> Self {
        Self(since_boot(instant))
    }
}

impl From<Moment> for BootInstant {
    fn from(moment: Moment) -> Self {
        Self::from_boot(moment.0)
    }
}

/// The time from the machine's start to `instant`.
pub(super) fn since_boot(instant: BootInstant) -> Duration {
    instant.saturating_since(BootInstant::from_boot(Duration::ZERO))
}

/// A message as one line.
pub(super) fn line(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    Ok(line)
}

/// The message in a line.
pub(super) fn read<'a, M: Deserialize<'a>>(line: &'a [u8]) -> io::Result<M> {
    Ok(serde_json::from_slice(line)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_status_names_the_signal() {
        assert_eq!(Status::Exit(127).to_string(), "exit status 127");
        assert_eq!(Status::Signal(9).to_string(), "killed by signal 9 (SIGKILL)");
        assert_eq!(Status::Signal(15).to_string(), "killed by signal 15 (SIGTERM)");
        assert_eq!(Status::Signal(31).to_string(), "killed by signal 31 (SIGSYS)");
        assert_eq!(Status::Signal(34).to_string(), "killed by signal 34");
    }

    #[test]
    fn a_task_survives_the_pipe() {
        let task = Task {
            argv: vec!["sh".into(), "-c".into(), "echo 'two\nlines' \u{1F980}".into()],
            cwd: Some("/tmp".into()),
            kill_grace: Duration::from_millis(250),
            until: BootInstant::from_boot(Duration::new(12, 345_678_901)).into(),
        };
        let line = line(&task).unwrap();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        assert_eq!(read::<Task>(&line).unwrap(), task);
    }

    #[test]
    fn an_order_is_short_enough_for_one_atomic_write_to_a_pipe() {
        let latest = Order::Until(BootInstant::from_boot(Duration::MAX).into());
        assert!(line(&latest).unwrap().len() <= 512);
    }
}
