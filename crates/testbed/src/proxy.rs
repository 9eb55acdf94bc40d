//! A TCP proxy between a client and its server that simulates network faults on demand.

use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, mpsc as blocking};
use std::task::Poll;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::trap::{Bait, Held, Scent, Snap, Trap};

/// How long a server must send nothing before its reply counts as completely swallowed.
const QUIET: Duration = Duration::from_millis(30);

/// What happens to connections and to their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Bytes pass.
    Forward,
    /// As if the server were dead: open connections are closed and new ones are refused.
    Refuse,
    /// No byte passes in either direction, and no connection is closed. New connections open and hang. Bytes that
    /// were sent meanwhile arrive when the mode changes.
    Stall,
    /// Like `Stall`, but only for bytes from the client.
    StallRequests,
    /// Like `Stall`, but only for bytes from the server: requests take effect and the client gets no reply.
    StallReplies,
    /// All bytes arrive later by this time, in both directions.
    Delay(Duration),
}

/// A fixed port in front of a server that may move, fail or stop answering.
///
/// It runs on a thread of its own, so that a test may block its runtime's threads.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    orders: mpsc::UnboundedSender<(Order, blocking::Sender<()>)>,
    trap: Arc<Trap>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
enum Order {
    Mode(Mode),
    Backend(SocketAddr),
    Cut,
    End,
}

impl Proxy {
    /// A proxy in front of `backend`, on a free port of the loopback interface, in [`Mode::Forward`].
    ///
    /// # Panics
    /// When there is no free port, or no thread can be started.
    #[must_use]
    pub fn new(backend: SocketAddr) -> Self {
        let (orders, inbox) = mpsc::unbounded_channel();
        let (ready, address) = blocking::channel();
        let trap = Arc::<Trap>::default();
        let ours = Arc::clone(&trap);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let port = Port::reserve().expect("a free port");
                let listener = port.listen().expect("a port of our own");
                ready.send(port.address).expect("the caller waits for the address");
                let (mode, connections) = (watch::Sender::new(Mode::Forward), JoinSet::new());
                Gate { port, listener: Some(listener), backend, trap: ours, mode, connections }
                    .serve(inbox)
                    .await;
            });
        });
        let address = address.recv().expect("the proxy has started");
        Self { address, orders, trap, thread: Some(thread) }
    }

    /// The address for clients. It never changes.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Changes the mode, also for open connections. The new mode is in force when this returns.
    pub fn set(&self, mode: Mode) {
        self.order(Order::Mode(mode));
    }

    /// Sends new connections to another address, such as the new port of a restarted server.
    pub fn set_backend(&self, backend: SocketAddr) {
        self.order(Order::Backend(backend));
    }

    /// Closes all open connections once. New ones follow the mode.
    pub fn cut(&self) {
        self.order(Order::Cut);
    }

    /// The next request whose bytes contain `needle` is forwarded, its reply is swallowed, and the connection is
    /// closed: the server has executed it, and the client does not know.
    ///
    /// The needle must be in the request itself. For prepared statements use [`Bait::Statement`].
    pub fn swallow_reply_once(&self, needle: impl Into<Vec<u8>>) {
        self.trap(Bait::Bytes(needle.into()), Snap::SwallowReply, 1);
    }

    /// Does `snap` to the next `times` requests that match `bait`. Replaces an earlier trap.
    pub fn trap(&self, bait: Bait, snap: Snap, times: usize) {
        self.trap.set(bait, snap, times);
    }

    /// Decides what happens to the messages that the trap holds now, and to those that it will hold until it is
    /// set again.
    pub fn let_go(&self, held: Held) {
        self.trap.let_go(held);
    }

    /// How many requests or replies a trap has swallowed, holds, or has delivered late.
    #[must_use]
    pub fn swallowed(&self) -> usize {
        self.trap.caught.load(Relaxed)
    }

    /// How many connections have ever been opened through it.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.trap.connections.load(Relaxed)
    }

    fn order(&self, order: Order) {
        let (done, obeyed) = blocking::channel();
        self.orders.send((order, done)).expect("the proxy's thread lives as long as the proxy");
        obeyed.recv().expect("the proxy's thread lives as long as the proxy");
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let (done, _) = blocking::channel();
        // Both can only fail if the thread has panicked, and then its message has been printed.
        if self.orders.send((Order::End, done)).is_ok() {
            self.thread.take().map(JoinHandle::join);
        }
    }
}

/// A port that stays reserved while nothing listens on it.
struct Port {
    address: SocketAddr,
    /// A bound socket that never listens: connections are refused, and no other process gets the port.
    _reserved: TcpSocket,
}

impl Port {
    fn reserve() -> io::Result<Self> {
        let reserved = TcpSocket::new_v4()?;
        reserved.set_reuseport(true)?;
        reserved.bind((Ipv4Addr::LOCALHOST, 0).into())?;
        Ok(Self { address: reserved.local_addr()?, _reserved: reserved })
    }

    fn listen(&self) -> io::Result<TcpListener> {
        let socket = TcpSocket::new_v4()?;
        socket.set_reuseport(true)?;
        socket.bind(self.address)?;
        socket.listen(1024)
    }
}

struct Gate {
    port: Port,
    /// `None` while connections are refused.
    listener: Option<TcpListener>,
    backend: SocketAddr,
    trap: Arc<Trap>,
    mode: watch::Sender<Mode>,
    connections: JoinSet<()>,
}

impl Gate {
    async fn serve(mut self, mut inbox: mpsc::UnboundedReceiver<(Order, blocking::Sender<()>)>) {
        loop {
            let order = tokio::select! {
                biased;
                order = inbox.recv() => order,
                client = accept(self.listener.as_ref()) => {
                    self.admit(client);
                    continue;
                }
                _ = self.connections.join_next(), if !self.connections.is_empty() => continue,
            };
            let Some((order, done)) = order else { return };
            self.admit_all().await;
            match order {
                Order::Mode(Mode::Refuse) => {
                    self.listener = None;
                    self.connections.shutdown().await;
                    self.mode.send_replace(Mode::Refuse);
                }
                Order::Mode(mode) => {
                    self.mode.send_replace(mode);
                    self.listener.get_or_insert_with(|| self.port.listen().expect("a port of our own"));
                }
                Order::Backend(backend) => self.backend = backend,
                Order::Cut => self.connections.shutdown().await,
                Order::End => return,
            }
            // The caller that gave the order may have panicked meanwhile.
            done.send(()).ok();
        }
    }

    fn admit(&mut self, client: TcpStream) {
        self.trap.connections.fetch_add(1, Relaxed);
        let relay = relay(client, self.backend, self.mode.subscribe(), Arc::clone(&self.trap));
        self.connections.spawn(relay);
    }

    /// Takes the connections that the kernel has already accepted: an order also applies to clients that connected
    /// before it.
    async fn admit_all(&mut self) {
        loop {
            // Lets the runtime learn of new connections.
            tokio::task::yield_now().await;
            let listener = self.listener.as_ref();
            let waiting = poll_fn(|cx| match listener.map(|listener| listener.poll_accept(cx)) {
                Some(Poll::Ready(Ok((client, _)))) => Poll::Ready(Some(client)),
                _ => Poll::Ready(None),
            });
            match waiting.await {
                Some(client) => self.admit(client),
                None => return,
            }
        }
    }
}

async fn accept(listener: Option<&TcpListener>) -> TcpStream {
    loop {
        match listener {
            None => std::future::pending().await,
            // A client that gave up between SYN and accept is not an error of the proxy.
            Some(listener) => {
                if let Ok((client, _)) = listener.accept().await {
                    return client;
                }
            }
        }
    }
}

/// Forwards bytes in both directions until both sides have ended, one side has failed, or a reply was swallowed. An
/// unreachable server looks like one that closes the connection at once.
async fn relay(client: TcpStream, backend: SocketAddr, mode: watch::Receiver<Mode>, trap: Arc<Trap>) {
    let Ok(server) = TcpStream::connect(backend).await else { return };
    for side in [&client, &server] {
        // Without it the kernel adds delays of its own. If the connection is gone, a later call reports that.
        side.set_nodelay(true).ok();
    }
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let spring = watch::Sender::new(None);
    let mut requests = mode.clone();
    let up = carry_requests(from_client, to_server, &mut requests, &trap, &spring);
    let mut replies = mode;
    let down = carry_replies(from_server, to_client, &mut replies, &spring, &trap);
    // An error on one side closes the other side too, as a broken network path does.
    tokio::try_join!(up, down).ok();
}

async fn carry_requests(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mode: &mut watch::Receiver<Mode>,
    trap: &Trap,
    spring: &watch::Sender<Option<Snap>>,
) -> io::Result<()> {
    let mut scent = Scent::default();
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut chunk).await?;
        pass(mode, Mode::StallRequests).await;
        if read == 0 {
            return to.shutdown().await;
        }
        match scent.take(&chunk[..read], trap) {
            None => to.write_all(&chunk[..read]).await?,
            Some(snap @ (Snap::SwallowReply | Snap::HoldReply)) => {
                spring.send_replace(Some(snap));
                to.write_all(&chunk[..read]).await?;
            }
            Some(Snap::HoldRequest) => {
                trap.hold().await?;
                to.write_all(&chunk[..read]).await?;
            }
            Some(Snap::SwallowRequest) => {
                trap.count();
                while let Ok(1..) = from.read(&mut chunk).await {}
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            Some(Snap::Postpone(span)) => {
                sleep(span).await;
                to.write_all(&chunk[..read]).await?;
                trap.count();
            }
        }
    }
}

async fn carry_replies(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    mode: &mut watch::Receiver<Mode>,
    spring: &watch::Sender<Option<Snap>>,
    trap: &Trap,
) -> io::Result<()> {
    let mut chunk = vec![0; 64 * 1024];
    loop {
        let read = from.read(&mut chunk).await?;
        let snap = *spring.borrow();
        if let Some(snap) = snap {
            let mut reply = chunk[..read].to_vec();
            // When the server has sent nothing for a while, it has executed the request.
            while let Ok(Ok(more @ 1..)) = timeout(QUIET, from.read(&mut chunk)).await {
                reply.extend_from_slice(&chunk[..more]);
            }
            if snap == Snap::SwallowReply {
                trap.count();
                return Err(io::ErrorKind::ConnectionAborted.into());
            }
            spring.send_replace(None);
            trap.hold().await?;
            to.write_all(&reply).await?;
            continue;
        }
        pass(mode, Mode::StallReplies).await;
        if read == 0 {
            return to.shutdown().await;
        }
        to.write_all(&chunk[..read]).await?;
    }
}

/// Waits while the mode stops bytes in the direction that `stalled` names.
async fn pass(mode: &mut watch::Receiver<Mode>, stalled: Mode) {
    loop {
        let now = *mode.borrow_and_update();
        match now {
            Mode::Delay(span) => return sleep(span).await,
            now if now == stalled || now == Mode::Stall => {
                // The sender lives longer than every connection, so an error means that the proxy ends.
                mode.changed().await.ok();
            }
            _ => return,
        }
    }
}
