//! How a connection to a target is made: in the clear, or under TLS where that is built in.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;

use super::target::Target;
#[cfg(feature = "tls")]
use super::tls::Tls;
use crate::config::hinted;

/// How long one address of a host may take to answer before the next is tried.
const ADDRESS_PATIENCE: Duration = Duration::from_secs(3);

/// How long all of it may take: name, address, TLS.
const PATIENCE: Duration = Duration::from_secs(10);

/// A connection, whatever is below it.
pub(super) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// What a job's connections are made with.
#[derive(Clone)]
pub(super) struct Transport {
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl Transport {
    /// What `target` needs; `ca` is the PEM text of the only authorities to trust.
    ///
    /// # Errors
    /// Text for people, where certificates are needed and there are none.
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
    /// Dropping it closes what was opened.
    pub(super) async fn connect(&self, target: &Target) -> io::Result<Box<dyn Stream>> {
        match timeout(PATIENCE, self.connect_patiently(target)).await {
            Ok(connected) => connected,
            Err(_) => Err(late(PATIENCE)),
        }
    }

    async fn connect_patiently(&self, target: &Target) -> io::Result<Box<dyn Stream>> {
        let stream = connect_to_any(target).await?;
        // The request is one small write: nothing is to be gained by waiting for more.
        stream.set_nodelay(true)?;
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return Ok(Box::new(tls.wrap(&target.host, stream).await?));
        }
        Ok(Box::new(stream))
    }
}

/// One address after the other: a host whose first one is dead must not cost the others their time.
async fn connect_to_any(target: &Target) -> io::Result<TcpStream> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in lookup_host((target.host.as_str(), target.port)).await? {
        last = match timeout(ADDRESS_PATIENCE, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => error,
            Err(_) => late(ADDRESS_PATIENCE),
        };
    }
    Err(last)
}

fn late(patience: Duration) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, format!("no connection within {} s", patience.as_secs()))
}
