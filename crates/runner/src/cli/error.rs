//! Why a subcommand failed: the message on stderr and the exit code.

use std::error::Error;
use std::io;
use std::process::ExitCode;

use super::logging::tell;
use crate::admin::ListenError;
use crate::config::{Config, ConfigErrors, NotUnicode};
use crate::engine::StartError;
use crate::ledger::LedgerError;
use crate::schedule::ScheduleError;

/// A subcommand did not do what it was asked to do.
#[derive(Debug, thiserror::Error)]
pub(super) enum CliError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// A variable that names the configuration cannot be read.
    #[error(transparent)]
    Variable(#[from] NotUnicode),
    /// No job has this name.
    #[error("there is no job {name:?}; the file declares {}", .declared.join(", "))]
    UnknownJob {
        /// The name in the arguments.
        name: String,
        /// The names in the file.
        declared: Vec<String>,
    },
    /// The argument of `--schedule` is no schedule. The message holds the whole error, so it is no source.
    #[error("--schedule: {0}")]
    Schedule(ScheduleError),
    /// The lock or the ledger could not be opened, or the process could not be set up.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The address of `[admin]` could not be served.
    #[error(transparent)]
    Listen(#[from] ListenError),
    /// The ledger did not answer, or refused.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The output could not be written.
    #[error("cannot print")]
    Print(#[from] io::Error),
    /// Something failed, and the user has been told what.
    #[error("failed")]
    Told,
    /// A run ignores its cancellation. The log says which.
    #[error("stuck")]
    Stuck,
}

impl CliError {
    /// It did not do what it was asked to do.
    const FAILED: u8 = 1;
    /// A run ignores its cancellation (`EX_SOFTWARE`).
    const STUCK: u8 = 70;

    /// No job of `config` has this name.
    pub(super) fn unknown_job(name: &str, config: &Config) -> Self {
        let declared = config.jobs.iter().map(|job| job.name.to_string()).collect();
        Self::UnknownJob { name: name.to_owned(), declared }
    }

    fn code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Variable(_) => ConfigErrors::EXIT_CODE,
            Self::UnknownJob { .. }
            | Self::Schedule(_)
            | Self::Start(_)
            | Self::Listen(_)
            | Self::Ledger(_)
            | Self::Print(_)
            | Self::Told => Self::FAILED,
            Self::Stuck => Self::STUCK,
        }
    }

    fn message(&self) -> Option<String> {
        match self {
            Self::Config(problems) => Some(problems.to_string()),
            Self::Variable(problem) => Some(problem.to_string()),
            Self::UnknownJob { .. }
            | Self::Schedule(_)
            | Self::Start(_)
            | Self::Listen(_)
            | Self::Ledger(_)
            | Self::Print(_) => Some(with_causes(self)),
            Self::Told | Self::Stuck => None,
        }
    }
}

/// Tells the user why a subcommand failed, and gives the exit code of the process.
pub(super) fn exit_code(result: Result<(), CliError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // `runner history | head`: the reader has closed the pipe because it has read enough.
        Err(CliError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            if let Some(message) = error.message() {
                tell(&message);
            }
            ExitCode::from(error.code())
        }
    }
}

/// The error and its causes in one line. Many libraries repeat the cause at the end of the message: it is
/// printed once.
fn with_causes(error: &dyn Error) -> String {
    let mut text = format!("error: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        if !text.ends_with(&message) {
            text.push_str(": ");
            text.push_str(&message);
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken_pipe() -> io::Error {
        io::Error::from(io::ErrorKind::BrokenPipe)
    }

    #[test]
    fn a_cause_that_the_message_repeats_is_printed_once() {
        let refused = |source: io::Error| CliError::from(StartError::from(source)).message();
        assert_eq!(
            refused(io::Error::other("no threads left")).as_deref(),
            Some("error: could not start: no threads left")
        );
        let source = Box::new(io::Error::other("no space left"));
        let ledger = LedgerError::Refused { doing: "read rows", source };
        assert_eq!(
            CliError::from(ledger).message().as_deref(),
            Some("error: the ledger refused to read rows: no space left")
        );
        assert_eq!(
            CliError::from(io::Error::other("no space left")).message().as_deref(),
            Some("error: cannot print: no space left")
        );
    }

    #[test]
    fn a_closed_pipe_is_a_success_only_where_the_output_goes_there() {
        assert_eq!(exit_code(Err(broken_pipe().into())), ExitCode::SUCCESS);
        let ledger = LedgerError::Unavailable { doing: "read rows", source: Box::new(broken_pipe()) };
        assert_eq!(exit_code(Err(ledger.into())), ExitCode::from(1));
    }

    #[test]
    fn a_bad_configuration_and_a_stuck_run_have_exit_codes_of_their_own() {
        let variable = NotUnicode { name: "RUNNER_CONFIG".to_owned() };
        assert_eq!(exit_code(Err(variable.into())), ExitCode::from(78));
        assert_eq!(exit_code(Err(CliError::Stuck)), ExitCode::from(70));
        assert_eq!(exit_code(Err(CliError::Told)), ExitCode::from(1));
    }
}
