//! The small supervisor process of a command.
//!
//! A runner that is killed or frozen cannot end the commands that it started. They would go on while another
//! replica runs the same firing. So the runner executes itself a second time, as `runner warden`, and that
//! process is the parent of the command. Pipes connect the two:
//!
//! ```text
//! runner ── stdin: what to run; every heartbeat; stop; end of file = the runner is dead ──► warden
//! runner ◄─ stdout: how it ended; end of file = the warden is dead ──────────────────────── warden
//! runner ◄─ stderr: what the command prints ─────────────────── command, and its descendants
//! ```
//!
//! When the runner's pipe is closed, or when no heartbeat has moved the deadline in time, the warden sends
//! SIGTERM to the command's process group and to processes that have left the group, and SIGKILL after
//! `kill_grace`. It exits when no process of the command is left. It has a session of its own, so that a
//! Ctrl-C at the terminal reaches only the runner. If the warden itself is killed, the runner kills every
//! process in that session.
//!
//! A parent-death signal is no replacement: the kernel sends it when the spawning thread ends, and only to
//! the child, not to grandchildren.

mod brood;
mod message;
mod orders;
mod proc;
mod refusal;
mod timer;
mod vigil;
mod ward;

use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::process::ExitCode;

use lockcore::{BootClock, BootInstant, SystemBootClock};
use rustix::process::{getpid, set_child_subreaper, setsid};
use tokio::signal::unix::{SignalKind, signal};

use brood::Brood;
use message::{Report, Task};
use orders::Orders;
use refusal::Refusal;
use vigil::Vigil;

pub(crate) use message::{CommandEnd, Status};
pub(crate) use ward::Ward;
pub use ward::WardenProgram;

/// The hidden subcommand that calls [`warden_main`]. `main` must look for it before it reads the
/// configuration: the warden must work even when the configuration is broken.
pub const WARDEN: &str = "warden";

/// Runs as the warden of one command, for the runner at the other end of stdin and stdout.
///
/// Call it from `main`, while the process has only one thread and nothing else to do.
#[must_use]
pub fn warden_main() -> ExitCode {
    match serve(&SystemBootClock) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "runner {WARDEN}: {error} (only the runner starts this, once for each command it runs)"
            );
            ExitCode::from(2)
        }
    }
}

fn serve(clock: &dyn BootClock) -> io::Result<()> {
    catch_signals()?;
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    let mut orders = Orders::new(io::stdin());
    // Nothing to run: the runner gave up the run before it sent a task.
    let Some(task) = orders.wait::<Task>()? else { return Ok(()) };
    let report = match start(&task, clock) {
        Ok(brood) => {
            let vigil = Vigil::new(brood, orders, clock, task.kill_grace, task.until.into())?;
            Report::Ended(vigil.keep()?)
        }
        Err(refusal) => Report::Refused(refusal),
    };
    match io::stdout().write_all(&message::line(&report)?) {
        // The runner is gone and cannot read it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Keeps the warden alive when a signal to end goes to all processes of a service or of one name. The runner
/// decides whether and when the command ends, and it may be draining. The signals are caught and not ignored,
/// because the command would inherit that it ignores them.
fn catch_signals() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _context = runtime.enter();
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()] {
        // The handler stays installed, also after this runtime is gone.
        drop(signal(kind)?);
    }
    Ok(())
}

fn start(task: &Task, clock: &dyn BootClock) -> Result<Brood, Refusal> {
    if clock.boot_now() >= BootInstant::from(task.until) {
        return Err(Refusal::too_late());
    }
    if let Some(cwd) = &task.cwd {
        // Here and not in the child: there a missing directory would look like a missing program.
        std::env::set_current_dir(cwd).map_err(|error| Refusal::of_directory(cwd, &error))?;
    }
    let output = || io::stderr().as_fd().try_clone_to_owned();
    let output = output().and_then(|first| Ok([first, output()?]));
    output
        .and_then(|output| Brood::start(&task.argv, output))
        .map_err(|error| Refusal::of_program(task.argv.first().map_or("", String::as_str), &error))
}
