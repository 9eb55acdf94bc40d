//! Every change of every lock, as the lock's own server reports it (`MONITOR`). So no client can hide a change.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::oracle::{LockAct, LockEvent};

/// Commands that the tests send to a server before it becomes a replica and after it becomes a primary, because
/// `MONITOR` does not report these changes.
pub(crate) const FOLLOWS: &str = "testbed: follows another";
pub(crate) const LEADS: &str = "testbed: leads";
/// How long a reader waits for data before it checks whether it has to stop.
const CHECK_EVERY: Duration = Duration::from_millis(100);

/// Watches one server until it is dropped. If the server is killed, the watch goes on when the server is back.
#[derive(Debug)]
pub struct LockWatch {
    seen: Arc<Mutex<Vec<LockEvent>>>,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl LockWatch {
    /// Starts to watch the server at `address`. After this has returned, no change is missed.
    ///
    /// # Panics
    /// When the server does not answer.
    #[must_use]
    pub fn of(address: SocketAddr) -> Self {
        let (seen, over) = (Arc::default(), Arc::<AtomicBool>::default());
        let (ready, started) = mpsc::channel();
        let watcher = Watcher { address, seen: Arc::clone(&seen), over: Arc::clone(&over) };
        let thread = thread::spawn(move || watcher.watch(&ready));
        started.recv_timeout(Duration::from_secs(10)).expect("the lock's server answers MONITOR");
        Self { seen, over, thread: Some(thread) }
    }

    /// The events so far.
    #[must_use]
    pub fn events(&self) -> Vec<LockEvent> {
        lock(&self.seen).clone()
    }
}

impl Drop for LockWatch {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        self.thread.take().map(JoinHandle::join);
    }
}

fn lock(seen: &Mutex<Vec<LockEvent>>) -> MutexGuard<'_, Vec<LockEvent>> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Watcher {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<LockEvent>>>,
    over: Arc<AtomicBool>,
}

impl Watcher {
    fn watch(&self, ready: &mpsc::Sender<()>) {
        while !self.over.load(Relaxed) {
            // The server is down. Try again.
            self.follow(ready).ok();
            thread::sleep(CHECK_EVERY / 10);
        }
    }

    fn follow(&self, ready: &mpsc::Sender<()>) -> std::io::Result<()> {
        let mut stream = TcpStream::connect_timeout(&self.address, CHECK_EVERY)?;
        stream.set_read_timeout(Some(CHECK_EVERY))?;
        stream.write_all(b"MONITOR\r\n")?;
        let mut events = EventReader::new(self.address.port());
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while !self.over.load(Relaxed) {
            match reader.read_until(b'\n', &mut line) {
                Ok(0) => break,
                Ok(_) if !line.ends_with(b"\n") => {}
                Ok(_) => {
                    let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                    line.clear();
                    if text == "+OK" {
                        lock(&self.seen).push(events.about_all(host_now(), LockAct::Unwatched));
                        // Fails after the first time, when nothing waits for it any more.
                        ready.send(()).ok();
                    } else {
                        lock(&self.seen).extend(events.read(&text));
                    }
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) => {}
                Err(_) => break,
            }
        }
        lock(&self.seen).extend(events.finish());
        Ok(())
    }
}

/// Makes events from the lines of the server: first a script, then the commands that it ran.
#[derive(Debug)]
struct EventReader {
    server: u16,
    /// The server is a replica. It does not execute scripts to their end, so its lines tell nothing about locks.
    follows_another: bool,
    script: Option<Script>,
}

/// A script whose commands are being read.
#[derive(Debug)]
struct Script {
    at: DateTime<Utc>,
    keys: usize,
    key: String,
    token: String,
    looked: bool,
    act: Option<LockAct>,
}

impl EventReader {
    fn new(server: u16) -> Self {
        Self { server, follows_another: false, script: None }
    }

    fn read(&mut self, line: &str) -> Vec<LockEvent> {
        let Some((at, by_script, words)) = parse(line) else { return Vec::new() };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if by_script {
            if let Some(script) = &mut self.script {
                script.ran(&words);
            }
            return Vec::new();
        }
        let mut events = Vec::from_iter(self.finish());
        let command = words.first().map(|word| word.to_uppercase()).unwrap_or_default();
        match (&*command, words.get(1..).unwrap_or_default()) {
            ("EVALSHA" | "EVAL", [_, keys, rest @ ..]) if !self.follows_another => {
                let keys: usize = keys.parse().unwrap_or_default();
                if let (Some(key), Some(token)) = (rest.first(), rest.get(keys)) {
                    let (key, token) = ((*key).to_owned(), (*token).to_owned());
                    self.script = Some(Script { at, keys, key, token, looked: false, act: None });
                }
            }
            ("FLUSHALL" | "FLUSHDB", _) if !self.follows_another => {
                events.push(self.about_all(at, LockAct::Forgotten))
            }
            ("ECHO", [said]) if matches!(*said, FOLLOWS | LEADS) => {
                self.follows_another = *said == FOLLOWS;
                events.push(self.about_all(at, LockAct::Unwatched));
            }
            _ => {}
        }
        events
    }

    /// The event of a script, after its last command was read.
    fn finish(&mut self) -> Option<LockEvent> {
        let Script { at, keys, key, token, looked, act } = self.script.take()?;
        // One key means a renewal. A renewal that finds no lock is not a release.
        let act = act.or((looked && keys > 1).then_some(LockAct::LeftAlone))?;
        Some(LockEvent { server: self.server, at, key, token, act })
    }

    fn about_all(&self, at: DateTime<Utc>, act: LockAct) -> LockEvent {
        LockEvent { server: self.server, at, key: String::new(), token: String::new(), act }
    }
}

impl Script {
    fn ran(&mut self, words: &[&str]) {
        let millis = |word: &str| Duration::from_millis(word.parse().unwrap_or_default());
        match words {
            ["GET", key] => self.looked |= *key == self.key,
            ["SET", key, token, "NX", "PX", ttl] if *key == self.key && *token == self.token => {
                self.act = Some(LockAct::Taken(millis(ttl)));
            }
            // An acquisition that did not get the lock asks how long the lock will live.
            ["PTTL", _] => self.act = None,
            ["PEXPIRE", key, ttl] if *key == self.key => self.act = Some(LockAct::Renewed(millis(ttl))),
            ["DEL", key] if *key == self.key => self.act = Some(LockAct::Released),
            _ => {}
        }
    }
}

/// Reads `+1339518083.107412 [0 127.0.0.1:60866] "SET" "key" "value"`: the time, whether a script ran the
/// command, and the command.
fn parse(line: &str) -> Option<(DateTime<Utc>, bool, Vec<String>)> {
    let (time, rest) = line.strip_prefix('+').unwrap_or(line).split_once(' ')?;
    let (seconds, micros) = time.split_once('.')?;
    let micros: i64 = seconds.parse::<i64>().ok()? * 1_000_000 + micros.parse::<i64>().ok()?;
    let (client, words) = rest.strip_prefix('[')?.split_once("] ")?;
    Some((DateTime::from_timestamp_micros(micros)?, client.ends_with(" lua"), unquote(words)))
}

/// Reads words in double quotes. A backslash quotes the next character. Other escapes do not occur in the keys and
/// values of locks.
fn unquote(text: &str) -> Vec<String> {
    let (mut words, mut word, mut inside) = (Vec::new(), String::new(), false);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if inside => {
                words.push(std::mem::take(&mut word));
                inside = false;
            }
            '"' => inside = true,
            '\\' if inside => word.extend(letters.next()),
            letter if inside => word.push(letter),
            _ => {}
        }
    }
    words
}

fn host_now() -> DateTime<Utc> {
    Utc::now()
}

#[cfg(test)]
mod tests {
    use crate::{PrivateRedis, wait_until_blocking};

    use super::*;

    const TTL: Duration = Duration::from_secs(2);
    const ACQUIRE: &str = "redis.call('GET', KEYS[1]) if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end return redis.call('PTTL', KEYS[1])";
    const RENEW: &str = "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('PEXPIRE', KEYS[1], ARGV[2])";
    const RELEASE: &str =
        "if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('DEL', KEYS[1])";

    #[test]
    fn every_move_of_a_lock_is_seen_and_what_changed_nothing_is_told_apart() {
        let redis = PrivateRedis::start();
        let watch = LockWatch::of(redis.addr());
        let eval = |script: &str, keys: &str, token: &str| {
            let keys: Vec<&str> = keys.split(' ').collect();
            let count = keys.len().to_string();
            let command = [&["EVAL", script, &count], &*keys, &[token, "2000"]].concat();
            redis.call(&command);
        };
        eval(ACQUIRE, "lock done", "one");
        eval(ACQUIRE, "lock done", "two");
        eval(RENEW, "lock", "one");
        eval(RENEW, "lock", "two");
        eval(RELEASE, "lock done", "two");
        eval(RELEASE, "lock done", "one");
        redis.flushall();
        redis.restart();
        redis.call(&["PING"]);
        let seen = wait_until_blocking(Duration::from_secs(10), || {
            let seen: Vec<_> = watch.events().into_iter().map(|event| (event.token, event.act)).collect();
            if seen.len() > 7 { Ok(seen) } else { Err(format!("{seen:?}")) }
        });
        let event = |token: &str, act| (token.to_owned(), act);
        assert_eq!(
            seen,
            [
                event("", LockAct::Unwatched),
                event("one", LockAct::Taken(TTL)),
                event("two", LockAct::LeftAlone),
                event("one", LockAct::Renewed(TTL)),
                event("two", LockAct::LeftAlone),
                event("one", LockAct::Released),
                event("", LockAct::Forgotten),
                event("", LockAct::Unwatched),
            ]
        );
    }

    #[test]
    fn a_server_that_follows_another_says_nothing_about_locks_until_it_is_promoted() {
        let (old, new) = (PrivateRedis::start(), PrivateRedis::start());
        let watch = LockWatch::of(new.addr());
        let acquire = |redis: &PrivateRedis, token: &str| {
            redis.call(&["EVAL", ACQUIRE, "2", "lock", "done", token, "2000"]);
        };
        new.follow(old.addr());
        acquire(&old, "one");
        new.call(&["EVAL", "return redis.call('GET', KEYS[1])", "2", "lock", "done", "one", "2000"]);
        // The replica deletes the keys that its primary deletes. Which locks it holds is not known.
        old.flushall();
        new.promote();
        acquire(&new, "two");
        new.call(&["PING"]);
        let seen = wait_until_blocking(Duration::from_secs(10), || {
            let acts: Vec<_> = watch.events().into_iter().map(|event| event.act).collect();
            if acts.last() == Some(&LockAct::Taken(TTL)) { Ok(acts) } else { Err(format!("{acts:?}")) }
        });
        let unwatched = LockAct::Unwatched;
        assert_eq!(seen, [unwatched, unwatched, unwatched, LockAct::Taken(TTL)]);
    }

    #[test]
    fn a_script_that_the_server_does_not_know_is_nothing() {
        let mut reader = EventReader::new(1);
        reader.read(r#"1.000001 [0 127.0.0.1:1] "EVALSHA" "abc" "1" "lock" "one" "2000""#);
        assert_eq!(reader.finish(), None);
    }

    #[test]
    fn quoted_words_may_hold_quotes() {
        assert_eq!(unquote(r#""a" "b\"c" "" "\\""#), ["a", "b\"c", "", "\\"]);
    }
}
