//! What a replica shows to people: its metrics and its log.

use std::cell::RefCell;
use std::io::{self, Write};
use std::sync::Once;

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tracing::Level;

thread_local! {
    /// What was logged on this thread.
    static LOG: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Keeps the log of each thread, in the whole process and for good. Tests share a process, and a place in the code
/// that logs for the first time while another test begins to listen might never be heard. So each test of the
/// corridor listens before anything is logged.
pub(super) fn listen() {
    static LISTEN: Once = Once::new();
    LISTEN.call_once(|| {
        let lines = tracing_subscriber::fmt().with_max_level(Level::DEBUG).with_ansi(false);
        tracing::subscriber::set_global_default(lines.with_writer(|| ThreadLog).finish()).unwrap();
    });
}

/// The metrics and the log of this thread, from the moment it is made.
pub(super) struct Shown {
    metrics: PrometheusHandle,
    _recording: metrics::LocalRecorderGuard<'static>,
}

impl Shown {
    pub(super) fn from_now() -> Self {
        listen();
        LOG.with_borrow_mut(Vec::clear);
        let recorder = Box::leak(Box::new(PrometheusBuilder::new().build_recorder()));
        let metrics = recorder.handle();
        Self { metrics, _recording: metrics::set_default_local_recorder(recorder) }
    }

    /// The value of this series, as `name{label="value"}`. Zero if it is not there.
    pub(super) fn value(&self, series: &str) -> f64 {
        let page = self.metrics.render();
        let value = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().unwrap())
    }

    /// How many lines of the log of this level hold `text`.
    pub(super) fn lines(&self, level: Level, text: &str) -> usize {
        let log = LOG.with_borrow(|log| String::from_utf8(log.clone()).unwrap());
        log.lines().filter(|line| line.contains(&format!(" {level} ")) && line.contains(text)).count()
    }
}

struct ThreadLog;

impl Write for ThreadLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.with_borrow_mut(|log| log.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
