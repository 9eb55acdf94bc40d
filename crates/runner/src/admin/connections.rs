//! Open connections, few and short: no client, slow or hostile, keeps a probe from its answer.

use std::collections::VecDeque;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::task::{AbortHandle, JoinSet};
use tracing::debug;

/// Connections at once; one more takes the place of the oldest.
const MOST: usize = 64;
/// From the connection to the end of its request's head.
const HEAD: Duration = Duration::from_secs(5);
/// From the connection to the end of its answer: longer than any scraper waits.
const LIFE: Duration = Duration::from_secs(30);
/// A request's head has no more bytes than this.
const HEAD_SIZE: usize = 16 * 1024;

/// Connections that are being served. They end with this value.
#[derive(Debug, Default)]
pub(super) struct Connections {
    tasks: JoinSet<()>,
    /// Oldest first.
    order: VecDeque<AbortHandle>,
}

impl Connections {
    /// Answers one request on `stream`, then closes it. Its body is never read.
    ///
    /// Where there are too many already the oldest is cut off. It is an idle one: a client that does
    /// its part is answered within milliseconds.
    pub(super) fn open(&mut self, stream: TcpStream, routes: Router) {
        self.order.retain(|connection| !connection.is_finished());
        if self.order.len() >= MOST
            && let Some(oldest) = self.order.pop_front()
        {
            oldest.abort();
        }
        self.order.push_back(self.tasks.spawn(answer(stream, routes)));
    }

    /// Waits until one of them has ended; for ever, where there is none.
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
