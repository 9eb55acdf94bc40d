//! Why a command did not start, in words that say what to repair.

use std::io;
use std::path::Path;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Why a command did not start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    /// For people.
    pub(crate) message: String,
    /// Whether another attempt may help.
    pub(crate) retry: bool,
}

impl Refusal {
    /// The run lost its leases while the warden was being started.
    pub(super) fn too_late() -> Self {
        let message = "the run's licence ended before the command could be started".into();
        Self { message, retry: true }
    }

    /// The command's directory cannot be entered.
    pub(super) fn of_directory(cwd: &Path, error: &io::Error) -> Self {
        let what = match error.kind() {
            io::ErrorKind::NotFound => "no such directory".into(),
            io::ErrorKind::NotADirectory => "it is not a directory".into(),
            _ => error.to_string(),
        };
        Self { message: format!("cannot work in cwd {cwd:?}: {what}"), retry: !is_final(error) }
    }

    /// The program cannot be executed.
    pub(super) fn of_program(program: &str, error: &io::Error) -> Self {
        let path = Path::new(program);
        let searched = !program.contains('/');
        let what = match Errno::from_io_error(error) {
            Some(Errno::NOENT) if searched => "no such program in PATH".into(),
            Some(Errno::NOENT) if path.exists() => "the interpreter that it names does not exist".into(),
            Some(Errno::NOENT) => "no such file".into(),
            Some(Errno::ACCESS) if !searched && path.is_dir() => "it is a directory".into(),
            Some(Errno::ACCESS) => "it is not executable, or not for this user".into(),
            Some(Errno::NOEXEC) => {
                "it is neither a program for this machine nor a script that begins with #!".into()
            }
            _ => error.to_string(),
        };
        Self { message: format!("cannot run {program:?}: {what}"), retry: !is_final(error) }
    }
}

/// Whether another attempt would fail in the same way. Being out of memory or processes is not final.
fn is_final(error: &io::Error) -> bool {
    matches!(
        Errno::from_io_error(error),
        Some(
            Errno::NOENT
                | Errno::ACCESS
                | Errno::PERM
                | Errno::NOTDIR
                | Errno::ISDIR
                | Errno::NOEXEC
                | Errno::LOOP
                | Errno::NAMETOOLONG
                | Errno::TOOBIG
        )
    )
}
