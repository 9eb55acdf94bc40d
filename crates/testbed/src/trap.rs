//! A trap: which request a proxy catches, and what it does with it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

/// The request to catch.
#[derive(Clone, Debug)]
pub enum Bait {
    /// These bytes, anywhere in what a client sends.
    Bytes(Vec<u8>),
    /// The execution of a PostgreSQL statement whose text contains this. A client sends the text once, when it
    /// prepares the statement. The trap remembers it for later executions on the connection.
    Statement(String),
}

/// What to do with the caught request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Snap {
    /// The server executes it. Its reply is swallowed and the connection is closed.
    SwallowReply,
    /// It never arrives. Nothing passes on the connection any more until the client closes it.
    SwallowRequest,
    /// It arrives later by this time, even if the client has closed the connection by then.
    Postpone(Duration),
    /// It waits in the proxy until [`Proxy::let_go`](crate::Proxy::let_go): the moment just before the server
    /// executes it.
    HoldRequest,
    /// The server executes it, and the reply waits in the proxy: the moment just after the execution.
    HoldReply,
}

/// What happens to messages that a trap holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// They stay in the proxy.
    Waits,
    /// They are forwarded.
    Passes,
    /// They are dropped, and their connection is closed.
    Ends,
}

/// One trap for all connections of a proxy.
#[derive(Debug)]
pub(crate) struct Trap {
    set: Mutex<Option<Set>>,
    held: watch::Sender<Held>,
    pub(crate) caught: AtomicUsize,
    pub(crate) connections: AtomicUsize,
}

#[derive(Debug)]
struct Set {
    bait: Bait,
    snap: Snap,
    times: usize,
}

impl Default for Trap {
    fn default() -> Self {
        let held = watch::Sender::new(Held::Waits);
        Self { set: Mutex::default(), held, caught: AtomicUsize::new(0), connections: AtomicUsize::new(0) }
    }
}

impl Trap {
    /// Sets the trap for the next `times` requests, and replaces an earlier setting.
    pub(crate) fn set(&self, bait: Bait, snap: Snap, times: usize) {
        if times > 0 {
            self.held.send_replace(Held::Waits);
        }
        *self.lock() = Some(Set { bait, snap, times }).filter(|set| set.times > 0);
    }

    /// Decides what happens to all messages that are held.
    pub(crate) fn let_go(&self, held: Held) {
        self.held.send_replace(held);
    }

    /// Holds the caller's message until it is decided what happens to it.
    ///
    /// # Errors
    /// When its connection must be closed.
    pub(crate) async fn hold(&self) -> std::io::Result<()> {
        let mut held = self.held.subscribe();
        self.count();
        // The sender is a field of this trap, so it is not dropped meanwhile.
        let decided = held.wait_for(|held| *held != Held::Waits).await.map(|held| *held);
        match decided {
            Ok(Held::Passes) => Ok(()),
            _ => Err(std::io::ErrorKind::ConnectionAborted.into()),
        }
    }

    /// Counts one caught message.
    pub(crate) fn count(&self) {
        self.caught.fetch_add(1, Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Set>> {
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The part of a connection's traffic that the trap has to remember.
#[derive(Debug, Default)]
pub(crate) struct Scent {
    tail: Vec<u8>,
    session: Session,
}

impl Scent {
    /// What to do with `bytes`, the next part of a client's requests.
    pub(crate) fn take(&mut self, bytes: &[u8], trap: &Trap) -> Option<Snap> {
        self.tail.extend_from_slice(bytes);
        let executed = self.session.read(bytes);
        let mut set = trap.lock();
        let found = set.as_ref().is_some_and(|set| match &set.bait {
            Bait::Bytes(needle) => holds(&self.tail, needle),
            Bait::Statement(text) => executed.iter().any(|executed| holds(executed, text.as_bytes())),
        });
        let snap = set.as_mut().filter(|_| found).map(|set| {
            set.times -= 1;
            set.snap
        });
        // The needle may be split over two parts. A request that was caught is not caught again.
        let reach = match set.as_ref().map(|set| &set.bait) {
            Some(Bait::Bytes(needle)) if !found => needle.len().saturating_sub(1),
            _ => 0,
        };
        self.tail.drain(..self.tail.len().saturating_sub(reach));
        set.take_if(|set| set.times == 0);
        snap
    }
}

fn holds(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len().max(1)).any(|part| part == needle)
}

/// Parses the client's side of a PostgreSQL session, only to know which statement is executed.
#[derive(Debug, Default)]
struct Session {
    phase: Phase,
    unread: Vec<u8>,
    prepared: HashMap<Vec<u8>, Vec<u8>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Before the message that starts the session: messages have no tag.
    #[default]
    Greeting,
    Talking,
    /// The connection uses another protocol.
    Foreign,
}

impl Session {
    /// The texts of the statements that are executed by the messages which `bytes` completes.
    fn read(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut executed = Vec::new();
        if self.phase != Phase::Foreign {
            self.unread.extend_from_slice(bytes);
        }
        while let Some(message) = self.next_message() {
            let (tag, body) = message.split_at(1);
            let mut words = body.split(|byte| *byte == 0).map(<[u8]>::to_vec);
            let mut word = || words.next().unwrap_or_default();
            match tag {
                b"P" => _ = self.prepared.insert(word(), word()),
                b"B" => {
                    let (_portal, name) = (word(), word());
                    executed.extend(self.prepared.get(&name).cloned());
                }
                b"Q" => executed.push(word()),
                _ => {}
            }
        }
        executed
    }

    /// The next complete message: its tag (0 where it has none) and its body.
    fn next_message(&mut self) -> Option<Vec<u8>> {
        // A request for encryption has the same form as the start of a session.
        const ASKS: [u32; 2] = [80_877_103, 80_877_104];
        const LONGEST_GREETING: usize = 10_000;
        let tagged = usize::from(self.phase == Phase::Talking);
        let length = u32_at(&self.unread, tagged)? as usize;
        if self.phase == Phase::Greeting && !(8..LONGEST_GREETING).contains(&length) || length < 4 {
            self.phase = Phase::Foreign;
            self.unread = Vec::new();
            return None;
        }
        let message = self.unread.get(..tagged + length)?.to_vec();
        self.unread.drain(..message.len());
        if self.phase == Phase::Greeting && !ASKS.contains(&u32_at(&message, 4)?) {
            self.phase = Phase::Talking;
        }
        let tag = if tagged == 1 { message[0] } else { 0 };
        Some([&[tag], &message[tagged + 4..]].concat())
    }
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(u32::from_be_bytes(four.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(tag: &str, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).expect("short").to_be_bytes();
        [tag.as_bytes(), &length, body].concat()
    }

    fn greeting() -> Vec<u8> {
        let encryption = message("", &80_877_103_u32.to_be_bytes());
        [encryption, message("", b"\0\x03\0\0user\0me\0\0")].concat()
    }

    #[test]
    fn every_execution_of_a_prepared_statement_is_recognised_by_its_text() {
        let mut session = Session::default();
        let prepare = message("P", b"s_1\0-- claim\nSELECT 1\0\0\0");
        let bind = message("B", b"\0s_1\0\0\0\0\0\0\0");
        assert!(session.read(&[greeting(), prepare].concat()).is_empty());
        for _ in 0..2 {
            let (start, end) = bind.split_at(7);
            assert!(session.read(start).is_empty());
            assert_eq!(session.read(end), [b"-- claim\nSELECT 1".to_vec()]);
        }
        assert!(session.read(&message("B", b"\0s_2\0\0\0\0\0\0\0")).is_empty());
        assert_eq!(session.read(&message("Q", b"COMMIT\0")), [b"COMMIT".to_vec()]);
    }

    #[test]
    fn another_protocol_is_left_alone() {
        let mut session = Session::default();
        assert!(session.read(b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n").is_empty());
        assert_eq!(session.phase, Phase::Foreign);
        assert!(session.read(&greeting()).is_empty());
    }

    #[test]
    fn a_trap_catches_as_often_as_it_was_set_for() {
        let trap = Trap::default();
        trap.set(Bait::Bytes(b"needle".to_vec()), Snap::SwallowReply, 2);
        let mut scent = Scent::default();
        let caught = ["hay nee", "dle", "needle", "needle"].map(|piece| scent.take(piece.as_bytes(), &trap));
        assert_eq!(caught, [None, Some(Snap::SwallowReply), Some(Snap::SwallowReply), None]);
    }
}
