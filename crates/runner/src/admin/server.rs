//! The server: it accepts connections and answers them.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use tokio::net::TcpListener;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{info, warn};

use super::connections::Connections;
use super::metrics::Metrics;
use super::readiness::Readiness;
use super::routes::{Sources, routes};
use crate::config::AdminSettings;

/// How often samples are sorted into their buckets when nobody asks for them.
const TIDY_EVERY: Duration = Duration::from_secs(5);
/// The pause after a connection could not be accepted. Files or memory are short then, and a retry at once
/// would only use up the processor.
const BREATH: Duration = Duration::from_millis(200);

/// The HTTP server of one replica.
#[derive(Debug)]
pub(crate) struct Admin {
    listener: TcpListener,
    sources: Arc<Sources>,
}

/// The address cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("could not serve HTTP on {address}, where admin.listen says ({hint})")]
pub(crate) struct ListenError {
    address: SocketAddr,
    hint: &'static str,
    source: io::Error,
}

impl Admin {
    /// Listens on the address, and makes this process record its metrics.
    ///
    /// # Errors
    /// When it cannot listen there.
    pub(crate) async fn bind(settings: &AdminSettings, readiness: Readiness) -> Result<Self, ListenError> {
        let address = settings.listen;
        let failed = |source: io::Error| ListenError { address, hint: hint(source.kind()), source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        info!(%address, "serving /healthz, /readyz and /metrics");
        let sources = Arc::new(Sources { readiness, metrics: Metrics::install() });
        Ok(Self { listener, sources })
    }

    /// Answers requests, for ever.
    ///
    /// # Cancel safety
    /// Dropping it closes the listener and every connection.
    pub(crate) async fn serve(self) -> Infallible {
        let routes: Router = routes(self.sources.clone());
        let mut connections = Connections::default();
        let mut tidy = interval(TIDY_EVERY);
        tidy.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                accepted = self.listener.accept() => match accepted {
                    Ok((stream, _)) => connections.open(stream, routes.clone()),
                    Err(error) => {
                        warn!(%error, "could not accept a connection");
                        tokio::time::sleep(BREATH).await;
                    }
                },
                () = connections.ended() => {}
                _ = tidy.tick() => self.sources.metrics.tidy(),
            }
        }
    }
}

/// What the user can do about the error.
fn hint(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::AddrInUse => {
            "another program has the port, maybe another replica on this host: choose another port"
        }
        io::ErrorKind::AddrNotAvailable => "this host has no such address",
        io::ErrorKind::PermissionDenied => "ports below 1024 need a privilege: choose a higher port",
        _ => "choose another address",
    }
}
