//! What a replica shows to people: its metrics and its log.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use tracing::Level;
use tracing::subscriber::DefaultGuard;

/// The metrics and the log of this thread, from the moment it is made.
pub(super) struct Shown {
    metrics: PrometheusHandle,
    log: Lines,
    _recording: metrics::LocalRecorderGuard<'static>,
    _logging: DefaultGuard,
}

impl Shown {
    pub(super) fn from_now() -> Self {
        let recorder = Box::leak(Box::new(PrometheusBuilder::new().build_recorder()));
        let (metrics, log) = (recorder.handle(), Lines::default());
        let writer = log.clone();
        let logging = tracing_subscriber::fmt()
            .with_max_level(Level::DEBUG)
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let recording = metrics::set_default_local_recorder(recorder);
        let logging = tracing::subscriber::set_default(logging);
        Self { metrics, log, _recording: recording, _logging: logging }
    }

    /// The value of this series, as `name{label="value"}`. Zero if it is not there.
    pub(super) fn value(&self, series: &str) -> f64 {
        let page = self.metrics.render();
        let value = page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().unwrap())
    }

    /// How many lines of the log of this level hold `text`.
    pub(super) fn lines(&self, level: Level, text: &str) -> usize {
        let log = String::from_utf8(self.log.0.lock().unwrap().clone()).unwrap();
        log.lines().filter(|line| line.contains(&format!(" {level} ")) && line.contains(text)).count()
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
