//! The kind `command`: a program of the host, under a [warden](crate::warden).

mod environment;
mod params;

use std::ffi::OsString;

use crate::capture::Capture;
use crate::job::{Job, JobContext, JobError};
use crate::warden::{CommandEnd, Status, Ward, WardenProgram};
use environment::Withheld;
pub use params::CommandParams;

/// Runs a program.
///
/// Environment variables tell the program which run it is. It has no input. The ledger keeps what it
/// prints. Exit status 0 is success, any other end means "retry", and a program that cannot be executed
/// means "fail". When [`run`](Job::run) returns, no process of the command is left.
#[derive(Clone, Debug)]
pub struct Command {
    params: CommandParams,
    withheld: Withheld,
    warden: WardenProgram,
}

impl Command {
    /// A command that inherits the environment of this process, except for the runner's settings
    /// (`RUNNER__*`) and for the variables that `secrets` names.
    pub fn new(params: CommandParams, secrets: impl IntoIterator<Item = impl Into<OsString>>) -> Self {
        Self { params, withheld: Withheld::new(secrets), warden: WardenProgram::current_exe() }
    }

    /// Takes another program as its warden.
    #[must_use]
    pub fn with_warden(self, warden: WardenProgram) -> Self {
        Self { warden, ..self }
    }

    fn ward(&self, ctx: &JobContext) -> Result<Ward, JobError> {
        // The command inherits the warden's environment. It is set here, so the values are never sent over
        // the pipe.
        let mut process = self.warden.process();
        self.withheld.from(&mut process);
        process.envs(&self.params.env).envs(environment::of_run(ctx));
        Ok(Ward::spawn(process)?)
    }
}

impl Job for Command {
    /// # Cancel safety
    /// Dropping the future ends the command as a cancellation does, but does not wait for its end.
    async fn run(&self, ctx: &JobContext) -> Result<(), JobError> {
        if ctx.is_cancelled() {
            return Err(JobError::retry("asked to stop before the command was started"));
        }
        let mut output = CommandOutput { capture: Capture::new(self.params.output_limit.bytes()), ctx };
        let ward = self.ward(ctx)?;
        let ended = ward.tend(&self.params.argv, self.params.cwd.as_deref(), ctx, &mut output.capture).await;
        match ended {
            Ok(ended) => verdict(&ended, ctx),
            Err(error) if error.is_retry() => Err(JobError::retry(error)),
            Err(error) => Err(JobError::fail(error)),
        }
    }
}

fn verdict(ended: &CommandEnd, ctx: &JobContext) -> Result<(), JobError> {
    let status = ended.status;
    if ended.left_behind > 0 {
        let count = ended.left_behind;
        tracing::warn!(job = %ctx.job(), count, "the command exited and left processes running; they were ended");
    }
    if ended.licence_ended {
        let why = "the runner did not renew the run's leases in time, so the warden ended the command";
        return Err(JobError::retry(format!("{why} ({status})")));
    }
    match status {
        Status::Exit(0) => Ok(()),
        status => Err(JobError::retry(status.to_string())),
    }
}

/// Stores what was printed in the run's context, however the run ends, also when it is dropped: the output
/// matters most when the command was killed.
struct CommandOutput<'a> {
    capture: Capture,
    ctx: &'a JobContext,
}

impl Drop for CommandOutput<'_> {
    fn drop(&mut self) {
        if let Some(text) = self.capture.text() {
            self.ctx.leave(text);
        }
    }
}
