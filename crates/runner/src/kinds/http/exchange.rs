//! One request and its answer, on a connection of its own.
//!
//! No connection is kept for the next request: one that the receiver closes in the same moment
//! could not be told from a request that was lost, and would have to be guessed about.

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

/// The most that an answer's head may take; what is more is no answer.
const LARGEST_HEAD: usize = 64 << 10;

/// Why there is no answer. Nothing in it repeats a path, a query or a header.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    /// Nobody was reached.
    #[error("cannot connect to {target}")]
    Unreachable {
        target: String,
        #[source]
        error: io::Error,
    },
    /// Somebody else may have the work by now.
    #[error("the run's licence ended before the request was sent")]
    LicenceEnded,
    /// The request may have arrived or not.
    #[error("no answer from {target}")]
    Broken {
        target: String,
        #[source]
        error: hyper::Error,
    },
    /// It began to answer and did not come to the end.
    #[error("{target} answered {status}, but its answer broke off")]
    Torn {
        target: String,
        status: StatusCode,
        #[source]
        error: hyper::Error,
    },
}

/// What the receiver said, without the body.
#[derive(Debug)]
pub(super) struct Reply(Response<()>);

impl Reply {
    pub(super) fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// A header of it, if it is there once and text.
    pub(super) fn header(&self, name: hyper::header::HeaderName) -> Option<&str> {
        self.0.headers().get(name)?.to_str().ok()
    }
}

/// Sends `request` and reads the answer to its end or to the limit of `kept`.
///
/// # Cancel safety
/// Dropping it closes the connection; the request may have been sent or not.
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
    // As late as can be: a process that was frozen until here must not send what is another's by now.
    if SystemBootClock.boot_now() >= licence.ends() {
        return Err(NoAnswer::LicenceEnded);
    }
    let talk = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let (head, body) = response.into_parts();
        let status = head.status;
        read(body, kept).await.map_err(|error| NoAnswer::Torn { target: target(), status, error })?;
        Ok(Reply(Response::from_parts(head, ())))
    };
    along(connection, talk).await
}

fn client() -> http1::Builder {
    let mut client = http1::Builder::new();
    client.max_buf_size(LARGEST_HEAD);
    client
}

/// Reads until the end, or until there is no room.
async fn read(mut body: Incoming, kept: &mut Kept) -> Result<(), hyper::Error> {
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await.transpose()? {
        if frame.data_ref().is_some_and(|data| !kept.push(data)) {
            break;
        }
    }
    Ok(())
}

/// Drives `connection` for as long as `talk` needs it, in the same task: who drops one drops both.
async fn along<T>(
    connection: http1::Connection<TokioIo<Box<dyn Stream>>, String>,
    talk: impl Future<Output = T>,
) -> T {
    let mut talk = std::pin::pin!(talk);
    tokio::select! {
        biased;
        said = &mut talk => return said,
        // How it ended is told to the talk, which may still have to read what has arrived.
        _ = connection => {}
    }
    talk.await
}
