//! A receiver on loopback: it writes down what it is sent, and answers as it is told.

use std::io::{BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use testbed::wait_until_blocking;

use super::PATIENCE;

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// `POST /path HTTP/1.1`
    pub(crate) line: String,
    /// With the names in lower case, in alphabetical order.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Request {
    /// The value of a header that must be there.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map_or_else(|| panic!("{name} is missing: {self:?}"), |(_, value)| value)
    }

    pub(crate) fn fence(&self) -> i64 {
        self.header("x-runner-fence").parse().expect("a number")
    }
}

/// What comes back.
pub(crate) enum Reply {
    /// These bytes, then the end.
    Say(String),
    /// These bytes again and again, for as long as anybody reads.
    SayForEver(String, &'static str),
    /// These bytes, and then nothing until the other side is gone.
    Hang(String),
}

/// An answer with this status and this body.
pub(crate) fn answer(status: &str, body: &str) -> Reply {
    answer_with(status, "", body)
}

/// The same with header lines, each with its end of line.
pub(crate) fn answer_with(status: &str, headers: &str, body: &str) -> Reply {
    Reply::Say(format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len()))
}

type Handler = dyn Fn(&Request) -> Reply + Send + Sync;

/// Everything that the threads of a receiver share.
struct Desk {
    handler: Box<Handler>,
    tls: Option<Arc<ServerConfig>>,
    seen: Mutex<Vec<Request>>,
    /// Connections that the other side closed while an answer was still owed.
    left: AtomicUsize,
    closing: AtomicBool,
}

/// The receiver. It stops listening when it is dropped.
pub(crate) struct Receiver {
    address: SocketAddr,
    desk: Arc<Desk>,
    listener: Option<JoinHandle<()>>,
}

impl Receiver {
    pub(crate) fn start(handler: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_with(None, handler)
    }

    pub(crate) fn start_with(
        tls: Option<Arc<ServerConfig>>,
        handler: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let socket = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("an address");
        let desk = Arc::new(Desk {
            handler: Box::new(handler),
            tls,
            seen: Mutex::default(),
            left: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
        });
        let shared = desk.clone();
        let listener = std::thread::spawn(move || {
            for stream in socket.incoming() {
                if shared.closing.load(Ordering::SeqCst) {
                    return;
                }
                let desk = shared.clone();
                let stream = stream.expect("a connection");
                // It ends with its connection, which every test closes.
                std::thread::spawn(move || desk.serve(stream));
            }
        });
        Self { address, desk, listener: Some(listener) }
    }

    pub(crate) fn port(&self) -> u16 {
        self.address.port()
    }

    /// `http://127.0.0.1:PORT` and `path`.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All requests so far.
    pub(crate) fn seen(&self) -> Vec<Request> {
        self.desk.seen.lock().expect("nobody panics with it").clone()
    }

    /// The one request that there must be.
    #[track_caller]
    pub(crate) fn only(&self) -> Request {
        let seen = self.seen();
        assert_eq!(seen.len(), 1, "{seen:#?}");
        seen[0].clone()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, count: usize) -> Vec<Request> {
        wait_until_blocking(PATIENCE, || {
            let seen = self.seen();
            if seen.len() >= count { Ok(seen) } else { Err(format!("{} of {count} requests", seen.len())) }
        })
    }

    /// Waits until the other side has closed `count` connections that were owed an answer.
    #[track_caller]
    pub(crate) fn wait_until_left(&self, count: usize) {
        wait_until_blocking(PATIENCE, || {
            let left = self.desk.left.load(Ordering::SeqCst);
            if left >= count { Ok(()) } else { Err(format!("{left} of {count} connections were closed")) }
        });
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.desk.closing.store(true, Ordering::SeqCst);
        // Wakes the listener, so that it sees the sign.
        drop(TcpStream::connect(self.address));
        self.listener.take().map(JoinHandle::join);
    }
}

impl Desk {
    fn serve(&self, stream: TcpStream) {
        match &self.tls {
            None => self.talk(&stream),
            Some(config) => {
                let connection = ServerConnection::new(config.clone()).expect("a good configuration");
                let mut tls = StreamOwned::new(connection, &stream);
                // A client that does not trust us says so here, and is gone.
                if tls.flush().is_ok() {
                    self.talk(&mut tls);
                    tls.conn.send_close_notify();
                    tls.flush().ok();
                }
            }
        }
        stream.shutdown(Shutdown::Both).ok();
    }

    fn talk(&self, stream: impl Read + Write) {
        let mut stream = BufReader::new(stream);
        let Some(request) = read(&mut stream) else { return };
        let reply = (self.handler)(&request);
        self.seen.lock().expect("nobody panics with it").push(request);
        let said = |stream: &mut BufReader<_>, text: &str| {
            let stream: &mut dyn Write = BufReader::get_mut(stream);
            stream.write_all(text.as_bytes()).and_then(|()| stream.flush()).is_ok()
        };
        match reply {
            Reply::Say(text) => drop(said(&mut stream, &text)),
            Reply::SayForEver(head, text) => {
                said(&mut stream, &head);
                while said(&mut stream, text) {}
                self.left.fetch_add(1, Ordering::SeqCst);
            }
            Reply::Hang(text) => {
                said(&mut stream, &text);
                // The other side says no more; the end of the stream is what is waited for.
                stream.read_to_end(&mut Vec::new()).ok();
                self.left.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

fn read(stream: &mut impl std::io::BufRead) -> Option<Request> {
    let mut text = || {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    };
    let line = text().filter(|line| !line.is_empty())?;
    let mut headers = Vec::new();
    while let Some(header) = text().filter(|line| !line.is_empty()) {
        let (name, value) = header.split_once(':').expect("a header");
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    headers.sort();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, length)| length.parse().expect("a length"))];
    stream.read_exact(&mut body).ok()?;
    Some(Request { line, headers, body: String::from_utf8(body).expect("text") })
}

/// A port of loopback on which nobody listens.
pub(crate) fn deserted_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a port").port()
}
