//! Open connections. There are few and each is short, so that no slow or hostile client can keep a probe
//! from its answer.

use std::collections::VecDeque;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, JoinSet};
use tracing::debug;

/// The most connections at once. One more closes the oldest.
const MOST: usize = 64;
/// The most time from the connection to the end of the request's head.
const HEAD: Duration = Duration::from_secs(5);
/// The most time from the connection to the end of the answer. No scraper waits longer.
const LIFE: Duration = Duration::from_secs(30);
/// The most bytes in a request's head.
const HEAD_SIZE: usize = 16 * 1024;

/// The connections that are being served. Dropping this value closes them.
#[derive(Debug, Default)]
pub(super) struct Connections {
    tasks: JoinSet<()>,
    /// Oldest first.
    order: VecDeque<AbortHandle>,
}

impl Connections {
    /// Answers one request on `stream`, then closes it. Its body is never read.
    ///
    /// If there are too many connections, it closes the oldest one. That one is idle: an active client has
    /// its answer within milliseconds.
    pub(super) fn open(&mut self, stream: TcpStream, routes: Router) {
        self.order.retain(|connection| !connection.is_finished());
        if self.order.len() >= MOST
            && let Some(oldest) = self.order.pop_front()
        {
            oldest.abort();
        }
        self.order.push_back(self.tasks.spawn(answer(stream, routes)));
    }

    /// Waits until a connection has ended. Without connections it waits for ever.
    ///
    /// # Cancel safety
    /// Safe to drop.
    pub(super) async fn ended(&mut self) {
        if self.tasks.join_next().await.is_none() {
            std::future::pending().await
        }
    }
}

async fn answer(stream: TcpStream, routes: Router) {
    let mut server = http1::Builder::new();
    server.keep_alive(false).timer(TokioTimer::new()).header_read_timeout(HEAD).max_buf_size(HEAD_SIZE);
    let connection = server.serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
    match tokio::time::timeout(LIFE, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => debug!(%error, "a connection ended early"),
        Err(_) => debug!("a connection took too long"),
    }
}
