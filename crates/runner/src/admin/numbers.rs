//! The metrics, as Prometheus reads them.

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tokio::sync::Mutex;
use tracing::warn;

use crate::telemetry;

/// The process's recorder, if it is ours.
#[derive(Debug)]
pub(super) struct Numbers {
    ours: Option<PrometheusHandle>,
    /// One page at a time: with many jobs it is megabytes.
    printing: Mutex<()>,
}

impl Numbers {
    /// Makes ours the recorder of this process. A binary that has set one of its own keeps it: the
    /// numbers go there, and nobody but its owner can print them.
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

    /// All numbers in the text format, version 0.0.4; `None` if the recorder is not ours.
    ///
    /// # Cancel safety
    /// Safe to drop.
    pub(super) async fn print(&self) -> Option<String> {
        let handle = self.ours.clone()?;
        let _alone = self.printing.lock().await;
        // Away from the engine's threads: with a thousand jobs it takes longer than a timer may wait.
        tokio::task::spawn_blocking(move || handle.render()).await.ok()
    }

    /// Sorts what was measured into the buckets. Without it samples pile up until somebody looks.
    pub(super) fn tidy(&self) {
        if let Some(handle) = &self.ours {
            handle.run_upkeep();
        }
    }
}
