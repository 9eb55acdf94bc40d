//! How a connection to a target is made: without encryption, or with TLS where that is built in.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::target::Target;
#[cfg(feature = "tls")]
use super::tls::Tls;
use crate::config::hinted;

/// The time limit for connecting to one address of a host. Then the next address is tried.
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(3);

/// The time limit for all steps together: name lookup, connecting, TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection, with or without TLS.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// What a job's connections are made with.
#[derive(Clone)]
pub(super) struct Transport {
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl Transport {
    /// What `target` needs. `ca` is the PEM text of the only authorities to trust.
    ///
    /// # Errors
    /// A message with a hint, where certificates are needed and there are none.
    pub(super) fn to(target: &Target, ca: Option<&str>) -> Result<Self, String> {
        if !target.is_https() && ca.is_some() {
            return Err(hinted("ca is for https, and the url says http", "leave it out, or write https"));
        }
        Ok(Self {
            #[cfg(feature = "tls")]
            tls: target.is_https().then(|| Tls::trusting(ca)).transpose()?,
        })
    }

    /// Opens a connection for one request.
    ///
    /// # Cancel safety
    /// Dropping it closes the connection.
    pub(super) async fn connect(&self, target: &Target) -> io::Result<Box<dyn Stream>> {
        match timeout(CONNECT_TIMEOUT, self.connect_without_limit(target)).await {
            Ok(connected) => connected,
            Err(_) => Err(late(CONNECT_TIMEOUT)),
        }
    }

    async fn connect_without_limit(&self, target: &Target) -> io::Result<Box<dyn Stream>> {
        let stream = connect_to_any(target).await?;
        // The request is one small write, so waiting for more data would only delay it.
        stream.set_nodelay(true)?;
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return Ok(Box::new(tls.wrap(&target.host, stream).await?));
        }
        Ok(Box::new(stream))
    }
}

/// Tries the addresses one after the other, each within its own limit. Otherwise a dead first address would
/// use up the time of the others.
async fn connect_to_any(target: &Target) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in lookup_host((target.host.as_str(), target.port)).await? {
        last = match timeout(ADDRESS_TIMEOUT, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => error,
            Err(_) => late(ADDRESS_TIMEOUT),
        };
    }
    Err(last)
}

fn late(limit: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {} s", limit.as_secs()))
}
