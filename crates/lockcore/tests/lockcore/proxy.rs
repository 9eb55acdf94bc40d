//! A network between client and server that fails when told to.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};

/// Forwards connections to a target that can be changed, as a name in DNS can.
pub(crate) struct Proxy {
    addr: SocketAddr,
    faults: Arc<Faults>,
    listener: AbortHandle,
}

struct Faults {
    target: Mutex<SocketAddr>,
    opened: AtomicUsize,
    /// Connections with a lower number are dead: they stay open and carry nothing.
    dead_below: AtomicUsize,
    replies_to_swallow: AtomicUsize,
}

impl Proxy {
    pub(crate) async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let faults = Arc::new(Faults {
            target: Mutex::new(target),
            opened: AtomicUsize::new(0),
            dead_below: AtomicUsize::new(0),
            replies_to_swallow: AtomicUsize::new(0),
        });
        let mut tasks = JoinSet::new();
        let listener = tasks.spawn(serve(listener, Arc::clone(&faults)));
        tasks.detach_all();
        Self { addr, faults, listener }
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}/0", self.addr)
    }

    /// Connections opened so far.
    pub(crate) fn opened(&self) -> usize {
        self.faults.opened.load(Ordering::SeqCst)
    }

    /// New connections go to `target`. Open connections stay where they are.
    pub(crate) fn move_to(&self, target: SocketAddr) {
        *self.faults.target.lock().unwrap() = target;
    }

    /// The next `count` replies are lost. Their requests are carried out.
    pub(crate) fn swallow_replies(&self, count: usize) {
        self.faults.replies_to_swallow.store(count, Ordering::SeqCst);
    }

    /// All open connections stay open and carry nothing from now on.
    pub(crate) fn deaden(&self) {
        self.faults.dead_below.store(self.opened(), Ordering::SeqCst);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

async fn serve(listener: TcpListener, faults: Arc<Faults>) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        let number = faults.opened.fetch_add(1, Ordering::SeqCst);
        connections.spawn(connect(client, number, Arc::clone(&faults)));
    }
}

async fn connect(client: TcpStream, number: usize, faults: Arc<Faults>) -> io::Result<()> {
    let target = *faults.target.lock().unwrap();
    let server = TcpStream::connect(target).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let dead = || number < faults.dead_below.load(Ordering::SeqCst);
    // A reply to one small request arrives in one piece.
    let swallow = || {
        let left = &faults.replies_to_swallow;
        left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    };
    tokio::select! {
        end = copy(from_client, to_server, dead) => end,
        end = copy(from_server, to_client, || dead() || swallow()) => end,
    }
}

async fn copy(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, lost: impl Fn() -> bool) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = from.read(&mut buffer).await?;
        if length == 0 {
            return Ok(());
        }
        if !lost() {
            to.write_all(&buffer[..length]).await?;
        }
    }
}
