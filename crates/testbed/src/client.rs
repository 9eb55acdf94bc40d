//! A small HTTP client that returns every byte of an answer.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than any answer takes on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The answer to a request.
#[derive(Debug)]
pub struct Answer {
    /// The status code.
    pub status: u16,
    /// Status line and headers, in lower case.
    pub head: String,
    /// The body.
    pub body: String,
}

/// A new connection, on which nothing was sent yet.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect_timeout(&address, TIMEOUT).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// Gets a page, with a `Host` header such as a scraper sends.
pub fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: runner.internal.example:9090\r\n\r\n"))
        .unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Sends `request` unchanged and reads until the server closes the connection.
pub fn ask(address: SocketAddr, request: &str) -> Result<Answer, String> {
    let mut stream = connect(address);
    stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
    let (head, body) = text.split_once("\r\n\r\n").ok_or_else(|| format!("no answer: {text:?}"))?;
    let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
    let status = status.ok_or_else(|| format!("no status: {head:?}"))?;
    Ok(Answer { status, head: head.to_lowercase(), body: body.to_owned() })
}
