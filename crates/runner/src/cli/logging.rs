//! Log lines on stderr: text for people or JSON for programs.

use std::io::IsTerminal;

use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, fmt};

use crate::config::{LogFormat, LogSettings};

/// Libraries whose log lines do not help those who run jobs. Their warnings and errors are shown.
const QUIET: [&str; 2] = ["sqlx", "tokio_cron_scheduler"];

/// Starts logging. A process that already has a logger keeps it.
pub(crate) fn start(settings: &LogSettings) {
    let mut filter = Targets::new().with_default(settings.level);
    for library in QUIET {
        filter = filter.with_target(library, settings.level.min(tracing::level_filters::LevelFilter::WARN));
    }
    let layer = match settings.format {
        LogFormat::Text => {
            let colours = std::io::stderr().is_terminal();
            fmt::layer().with_writer(std::io::stderr).with_target(false).with_ansi(colours).boxed()
        }
        LogFormat::Json => fmt::layer().with_writer(std::io::stderr).json().flatten_event(true).boxed(),
    };
    if let Err(error) = tracing_subscriber::registry().with(layer.with_filter(filter)).try_init() {
        tracing::debug!(%error, "logging was set up already");
    }
}
