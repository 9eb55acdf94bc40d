//! One request and its answer, on a connection of its own.
//!
//! No connection is kept for the next request. The receiver may close a kept connection at the moment when we
//! send, and then we could not know whether it received the request.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;

use hyper::body::{Body as _, Incoming};
use hyper::client::conn::http1;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use lockcore::{BootClock as _, SystemBootClock};

use super::kept::Kept;
use super::params::HttpParams;
use super::transport::Stream;
use crate::job::Licence;

/// The largest head of an answer, in bytes. A larger one is an error.
const LARGEST_HEAD: usize = 64 << 10;

/// Why there is no answer. No text of it contains a path, a query or a header, which may be secret.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    /// No connection could be made.
    #[error("cannot connect to {target}")]
    Unreachable {
        target: String,
        #[source]
        error: io::Error,
    },
    /// Another replica may own the firing by now.
    #[error("the run's licence ended before the request was sent")]
    LicenceEnded,
    /// The request may or may not have arrived.
    #[error("no answer from {target}")]
    Broken {
        target: String,
        #[source]
        error: hyper::Error,
    },
    /// The receiver began to answer and did not finish.
    #[error("{target} answered {status}, but its answer broke off")]
    Torn {
        target: String,
        status: StatusCode,
        #[source]
        error: hyper::Error,
    },
}

/// The answer of the receiver, without the body.
#[derive(Debug)]
pub(super) struct Reply(Response<()>);

impl Reply {
    pub(super) fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// The first header of that name, if it is text.
    pub(super) fn header(&self, name: hyper::header::HeaderName) -> Option<&str> {
        self.0.headers().get(name)?.to_str().ok()
    }
}

/// Sends `request` and reads the answer to its end or to the limit of `kept`.
///
/// # Cancel safety
/// Dropping it closes the connection; the request may or may not have been sent.
pub(super) async fn exchange(
    params: &HttpParams,
    request: Request<String>,
    licence: &Licence,
    kept: &mut Kept,
) -> Result<Reply, NoAnswer> {
    let target = || params.target.to_string();
    let broken = |error| NoAnswer::Broken { target: target(), error };
    let stream = params.transport.connect(&params.target).await;
    let stream = stream.map_err(|error| NoAnswer::Unreachable { target: target(), error })?;
    let (mut sender, connection) = client().handshake(TokioIo::new(stream)).await.map_err(broken)?;
    // Checked as late as possible: a process that was frozen until here must not send a request for a firing
    // that another replica may own by now.
    if SystemBootClock.boot_now() >= licence.ends() {
        return Err(NoAnswer::LicenceEnded);
    }
    let request_and_answer = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let (head, body) = response.into_parts();
        let status = head.status;
        read(body, kept).await.map_err(|error| NoAnswer::Torn { target: target(), status, error })?;
        Ok(Reply(Response::from_parts(head, ())))
    };
    drive(connection, request_and_answer).await
}

fn client() -> http1::Builder {
    let mut client = http1::Builder::new();
    client.max_buf_size(LARGEST_HEAD);
    client
}

/// Reads until the end, or until the limit is reached.
async fn read(mut body: Incoming, kept: &mut Kept) -> Result<(), hyper::Error> {
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await.transpose()? {
        if frame.data_ref().is_some_and(|data| !kept.push(data)) {
            break;
        }
    }
    Ok(())
}

/// Drives `connection` while `work` uses it. Both are in one task, so dropping this drops both.
async fn drive<T>(
    connection: http1::Connection<TokioIo<Box<dyn Stream>>, String>,
    work: impl Future<Output = T>,
) -> T {
    let mut work = std::pin::pin!(work);
    tokio::select! {
        biased;
        done = &mut work => return done,
        // The connection is closed. `work` learns why, and may still have to read what has arrived.
        _ = connection => {}
    }
    work.await
}
