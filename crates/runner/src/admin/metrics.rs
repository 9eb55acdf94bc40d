//! The metrics, in the text format of Prometheus.

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::sync::Mutex;
use tracing::warn;

use crate::telemetry;

/// What this process has measured.
#[derive(Debug)]
pub(super) struct Metrics {
    /// The recorder, if it is ours.
    ours: Option<PrometheusHandle>,
    /// One page at a time: with many jobs a page has megabytes.
    printing: Mutex<()>,
}

impl Metrics {
    /// Installs our recorder in this process. A binary that has installed one of its own keeps it. Then the
    /// metrics go there, and only their owner can print them.
    pub(super) fn install() -> Self {
        let recorder = telemetry::BUCKETS
            .iter()
            .try_fold(PrometheusBuilder::new(), |builder, (name, buckets)| {
                builder.set_buckets_for_metric(Matcher::Full((*name).to_owned()), buckets)
            })
            .map(PrometheusBuilder::build_recorder);
        let ours = match recorder {
            Ok(recorder) => {
                let handle = recorder.handle();
                metrics::set_global_recorder(recorder).is_ok().then_some(handle)
            }
            Err(error) => {
                warn!(%error, "no metrics");
                None
            }
        };
        if ours.is_none() {
            warn!("this program records its metrics itself: /metrics has none to show");
        }
        Self { ours, printing: Mutex::new(()) }
    }

    /// All metrics in the text format, version 0.0.4; `None` if the recorder is not ours.
    ///
    /// # Cancel safety
    /// Safe to drop.
    pub(super) async fn print(&self) -> Option<String> {
        let handle = self.ours.clone()?;
        let _alone = self.printing.lock().await;
        // Not on the engine's threads: with a thousand jobs it takes longer than a timer may wait.
        tokio::task::spawn_blocking(move || handle.render()).await.ok()
    }

    /// Sorts the samples into their buckets. Otherwise they use memory until the next scrape.
    pub(super) fn tidy(&self) {
        if let Some(handle) = &self.ours {
            handle.run_upkeep();
        }
    }
}
