//! Writes the log on a thread of its own, so that nothing else waits for whoever reads the log.
//!
//! The reader of a pipe may stand still, a terminal may be paused, a disk may be full. Then lines wait here, up to a
//! limit. Lines beyond it are lost and counted.

use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// The most that waits to be written, in bytes.
const MOST_WAITING: usize = 2 << 20;
/// How soon a writer that answers "not now" is asked again.
const NOT_NOW: Duration = Duration::from_millis(10);

/// The near end of the queue. Each write is one whole line, and none of them waits.
#[derive(Clone, Debug)]
pub(super) struct LogWriter(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    queue: Mutex<Waiting>,
    changed: Condvar,
    most: usize,
}

#[derive(Debug, Default)]
struct Waiting {
    /// Whole lines, one after the other.
    lines: Vec<u8>,
    /// Whether the thread has taken lines that it has not written yet.
    is_writing: bool,
    is_closed: bool,
    lost: u64,
}

impl LogWriter {
    /// Starts the thread, which writes to `out` until [`finish`](Self::finish).
    ///
    /// # Errors
    /// When the operating system refuses a thread.
    pub(super) fn start(out: impl Write + Send + 'static) -> io::Result<Self> {
        Self::with_room(MOST_WAITING, out)
    }

    fn with_room(most: usize, out: impl Write + Send + 'static) -> io::Result<Self> {
        let shared = Arc::new(Shared { queue: Mutex::default(), changed: Condvar::new(), most });
        let far = shared.clone();
        thread::Builder::new().name("log".into()).spawn(move || far.write_all(out))?;
        Ok(Self(shared))
    }

    /// Takes one line. Says whether there was room for it; if not, it counts as lost.
    pub(super) fn push(&self, line: &[u8]) -> bool {
        let mut queue = self.0.queue();
        let fits = !queue.is_closed && queue.lines.len() + line.len() <= self.0.most;
        if fits {
            queue.lines.extend_from_slice(line);
            self.0.changed.notify_all();
        } else {
            queue.lost = queue.lost.saturating_add(1);
        }
        fits
    }

    /// How many lines were lost so far: there was no room for them, or they could not be written.
    pub(super) fn lost(&self) -> u64 {
        self.0.queue().lost
    }

    /// Takes no more lines, and waits for `patience` until all are written. A thread that is still busy then ends
    /// with the process.
    pub(super) fn finish(&self, patience: Duration) {
        let mut queue = self.0.queue();
        queue.is_closed = true;
        self.0.changed.notify_all();
        let busy = |queue: &mut Waiting| queue.is_writing || !queue.lines.is_empty();
        drop(self.0.changed.wait_timeout_while(queue, patience, busy));
    }
}

/// Each call is one line: that is how the subscriber writes.
impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Waiting> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The work of the thread: takes what waits and writes it, until the queue is closed and empty.
    fn write_all(&self, mut out: impl Write) {
        loop {
            let idle = |queue: &mut Waiting| queue.lines.is_empty() && !queue.is_closed;
            let mut queue =
                self.changed.wait_while(self.queue(), idle).unwrap_or_else(PoisonError::into_inner);
            if queue.lines.is_empty() {
                return;
            }
            let lines = std::mem::take(&mut queue.lines);
            queue.is_writing = true;
            drop(queue);
            let unwritten = write_lines(&mut out, &lines);
            let mut queue = self.queue();
            queue.lost = queue.lost.saturating_add(unwritten);
            queue.is_writing = false;
            self.changed.notify_all();
        }
    }
}

/// Writes lines, and waits as long as that takes. Returns how many could not be written.
fn write_lines(out: &mut impl Write, mut lines: &[u8]) -> u64 {
    while !lines.is_empty() {
        match out.write(lines) {
            Ok(written) if written > 0 => lines = &lines[written..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Another process has made a terminal or a pipe that we share non-blocking.
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(NOT_NOW),
            Ok(_) | Err(_) => {
                let ends = lines.iter().filter(|byte| **byte == b'\n').count();
                return u64::try_from(ends).unwrap_or(u64::MAX);
            }
        }
    }
    0
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    /// Writes only what it is told to, and waits to be told.
    struct Slow {
        answers: Receiver<io::Result<usize>>,
        asked: SyncSender<Vec<u8>>,
    }

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.asked.send(bytes.to_vec()).unwrap();
            // A test that ends without an answer lets everything through.
            self.answers.recv().unwrap_or(Ok(bytes.len()))
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    type Told = (LogWriter, SyncSender<io::Result<usize>>, Receiver<Vec<u8>>);

    fn slow(most: usize) -> Told {
        let (answer, answers) = sync_channel(100);
        let (asked, told) = sync_channel(100);
        (LogWriter::with_room(most, Slow { answers, asked }).unwrap(), answer, told)
    }

    #[test]
    fn a_line_never_waits_for_the_reader_and_those_beyond_the_limit_are_counted() {
        let (log, answer, asked) = slow(8);
        assert!(log.push(b"one\n"));
        assert_eq!(asked.recv_timeout(SOON).unwrap(), b"one\n");
        // The thread stands in its write now, and eight bytes have room.
        assert!(log.push(b"two\n") && log.push(b"six\n"));
        assert!(!log.push(b"ten\n") && !log.push(b"\n"));
        assert_eq!(log.lost(), 2);
        answer.send(Ok(4)).unwrap();
        assert_eq!(asked.recv_timeout(SOON).unwrap(), b"two\nsix\n");
        answer.send(Ok(8)).unwrap();
        log.finish(SOON);
        assert_eq!(log.lost(), 2);
    }

    #[test]
    fn lines_that_cannot_be_written_are_counted_and_the_next_are_tried() {
        let (log, answer, asked) = slow(100);
        log.push(b"one\n");
        asked.recv_timeout(SOON).unwrap();
        log.push(b"two\n");
        log.push(b"six\n");
        answer.send(Err(ErrorKind::StorageFull.into())).unwrap();
        assert_eq!(asked.recv_timeout(SOON).unwrap(), b"two\nsix\n");
        answer.send(Ok(4)).unwrap();
        assert_eq!(asked.recv_timeout(SOON).unwrap(), b"six\n");
        answer.send(Err(ErrorKind::BrokenPipe.into())).unwrap();
        log.push(b"ten\n");
        assert_eq!(asked.recv_timeout(SOON).unwrap(), b"ten\n");
        answer.send(Ok(4)).unwrap();
        log.finish(SOON);
        assert_eq!(log.lost(), 2);
    }

    #[test]
    fn a_reader_that_is_not_ready_is_waited_for() {
        let (log, answer, asked) = slow(100);
        log.push(b"one\n");
        for refusal in [ErrorKind::WouldBlock, ErrorKind::Interrupted, ErrorKind::WouldBlock] {
            assert_eq!(asked.recv_timeout(SOON).unwrap(), b"one\n");
            answer.send(Err(refusal.into())).unwrap();
        }
        answer.send(Ok(1)).unwrap();
        answer.send(Ok(3)).unwrap();
        log.finish(SOON);
        assert_eq!(asked.iter().last().unwrap(), b"ne\n");
        assert_eq!(log.lost(), 0);
    }

    #[test]
    fn the_end_waits_for_what_is_written_and_only_for_so_long() {
        let (log, answer, asked) = slow(100);
        log.push(b"one\n");
        asked.recv_timeout(SOON).unwrap();
        log.finish(Duration::from_millis(1));
        assert!(!log.push(b"late\n"), "it takes lines after its end");
        answer.send(Ok(4)).unwrap();
        log.finish(SOON);
        // The thread has ended: it holds no end of the channel any more.
        assert!(asked.recv_timeout(SOON).is_err());
    }
}
