//! The small supervisor that a command runs under.
//!
//! A runner that is killed or frozen cannot end the commands that it started, and they would work
//! on beside the next owner of the same firing. So the runner executes itself a second time, as
//! `runner warden`, and that process is the parent of the command. The two are tied by a pipe:
//!
//! ```text
//! runner ── stdin: what to run; every heartbeat; stop; end of file = the runner is dead ──► warden
//! runner ◄─ stdout: how it ended; end of file = the warden is dead ──────────────────────── warden
//! runner ◄─ stderr: what the command prints ──────────────────────── command, and its offspring
//! ```
//!
//! At the end of the pipe, or when no heartbeat has moved the deadline in time, the warden sends
//! SIGTERM to the command's process group and to what has left it, and SIGKILL after `kill_grace`.
//! It exits when nothing of the command is left. It has a session of its own, so that a Ctrl-C at
//! the terminal reaches the runner alone; if the warden itself is killed, the runner kills
//! everybody in that session.
//!
//! A parent-death signal would not do: it follows the thread that spawned, and misses grandchildren.

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

/// The hidden subcommand that [`warden_main`] is: `main` must look for it before it reads anything
/// else, for a command of a job may have to be ended when the configuration is broken.
pub const WARDEN: &str = "warden";

/// Is the warden of one command, as the runner on the other end of its standard streams says.
///
/// To be called from `main`, on a process that has one thread yet and nothing else to do.
#[must_use]
pub fn warden_main() -> ExitCode {
    match serve(&SystemBootClock) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("runner {WARDEN}: {error} (the runner itself starts this, for each command it runs)");
            ExitCode::from(2)
        }
    }
}

fn serve(clock: &dyn BootClock) -> io::Result<()> {
    shield()?;
    setsid()?;
    set_child_subreaper(Some(getpid()))?;
    let mut orders = Orders::new(io::stdin());
    // Nothing to run: the run was given up before it began.
    let Some(task) = orders.wait::<Task>()? else { return Ok(()) };
    let report = match start(&task, clock) {
        Ok(brood) => {
            let vigil = Vigil::new(brood, orders, clock, task.kill_grace, task.until.into())?;
            Report::Ended(vigil.keep()?)
        }
        Err(refusal) => Report::Refused(refusal),
    };
    match io::stdout().write_all(&message::line(&report)?) {
        // Nobody is left who could read it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Survives the signals that mean "end" when they are sent to everybody of a name or of a service:
/// whether and when the command ends is for the runner to say, which may be draining. They are
/// caught and not ignored, because the command would inherit the latter.
fn shield() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _context = runtime.enter();
    for kind in [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup(), SignalKind::quit()] {
        // What is caught once stays caught, also without the runtime that heard of it.
        drop(signal(kind)?);
    }
    Ok(())
}

fn start(task: &Task, clock: &dyn BootClock) -> Result<Brood, Refusal> {
    if clock.boot_now() >= BootInstant::from(task.until) {
        return Err(Refusal::too_late());
    }
    if let Some(cwd) = &task.cwd {
        // Here and not in the child, where a missing directory would look like a missing program.
        std::env::set_current_dir(cwd).map_err(|error| Refusal::of_directory(cwd, &error))?;
    }
    let output = || io::stderr().as_fd().try_clone_to_owned();
    let output = output().and_then(|first| Ok([first, output()?]));
    output
        .and_then(|output| Brood::start(&task.argv, output))
        .map_err(|error| Refusal::of_program(task.argv.first().map_or("", String::as_str), &error))
}
