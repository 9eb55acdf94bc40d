//! Log lines on stderr: text for people or JSON for programs.

use std::convert::Infallible;
use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::panic::PanicHookInfo;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use super::log_writer::LogWriter;
use crate::config::{LogFormat, LogSettings};
use crate::telemetry;

/// Libraries whose log lines do not help those who run jobs. Their warnings and errors are shown.
const QUIET: [&str; 2] = ["sqlx", "tokio_cron_scheduler"];

/// How long the end of the process waits for a slow reader of the log.
const LAST_LINES: Duration = Duration::from_secs(1);

/// How often it is looked whether lines were lost.
const LOOK: Duration = Duration::from_secs(1);

/// Stderr under a descriptor of our own. While a write to it waits, nobody else waits for Rust's lock on stderr.
struct Stderr(OwnedFd);

impl Write for Stderr {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(rustix::io::write(&self.0, bytes)?)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The log of this process. There is one, as there is one stderr.
static LOG: Mutex<Option<LogWriter>> = Mutex::new(None);

/// Starts logging. A process that already has a logger keeps it.
///
/// # Errors
/// When the operating system refuses a file descriptor or a thread.
pub(super) fn start(settings: &LogSettings) -> io::Result<()> {
    let log = LogWriter::start(Stderr(io::stderr().as_fd().try_clone_to_owned()?))?;
    let mut filter = Targets::new().with_default(settings.level);
    for library in QUIET {
        filter = filter.with_target(library, settings.level.min(LevelFilter::WARN));
    }
    let writer = log.clone();
    let layer = fmt::layer().with_writer(move || writer.clone());
    let layer = match settings.format {
        LogFormat::Text => layer.with_target(false).with_ansi(io::stderr().is_terminal()).boxed(),
        LogFormat::Json => layer.json().flatten_event(true).boxed(),
    };
    if let Err(error) = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init() {
        log.finish(Duration::ZERO);
        tracing::debug!(%error, "logging was set up already");
        return Ok(());
    }
    // Rust's own hook writes to stderr, and would wait for its reader.
    std::panic::set_hook(Box::new(log_panic));
    *current() = Some(log);
    Ok(())
}

/// Counts lost lines, and logs how many there were as soon as a line can be logged again. Runs until dropped.
pub(super) async fn report_lost_lines() -> Infallible {
    let mut told = 0;
    loop {
        tokio::time::sleep(LOOK).await;
        let Some(log) = current().clone() else { continue };
        let lost = log.lost();
        if lost > told {
            tracing::warn!(
                lines = lost - told,
                "log lines were lost: nobody read them, or they could not be written"
            );
        }
        // If this line is lost as well, the next one counts it.
        if log.lost() == lost {
            told = lost;
        }
        telemetry::log_lines_lost(lost);
    }
}

/// Writes what is still to be written. Waits at most a second for whoever reads it. Nothing is logged after it.
pub(super) fn finish() {
    let log = current().take();
    if let Some(log) = log {
        log.finish(LAST_LINES);
    }
}

/// Tells the user one thing on stderr, through the log if there is one. If stderr is closed, there is nobody to tell.
pub(super) fn tell(message: &dyn Display) {
    let text = format!("{message}\n");
    // Not in one expression: nobody else may wait for the lock while stderr is written to.
    let log = current().clone();
    match log {
        Some(log) => _ = log.push(text.as_bytes()),
        None => _ = io::stderr().write_all(text.as_bytes()),
    }
}

fn current() -> MutexGuard<'static, Option<LogWriter>> {
    LOG.lock().unwrap_or_else(PoisonError::into_inner)
}

fn log_panic(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("no message");
    let location = panic.location().map(tracing::field::display);
    let backtrace = std::backtrace::Backtrace::capture();
    let captured = backtrace.status() == std::backtrace::BacktraceStatus::Captured;
    let backtrace = captured.then(|| tracing::field::display(backtrace));
    tracing::error!(message, location, backtrace, "panicked");
}
