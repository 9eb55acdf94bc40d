//! The log lines of a process. Tests wait for a line, and failure messages show the last ones.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// More lines than a normal test writes. The limit protects the machine's memory from a replica in a hot loop.
const KEPT: usize = 20_000;
/// How many lines a failure message shows.
const SHOWN: usize = 60;

/// Lines of one or more streams, in the order of their arrival.
#[derive(Clone, Debug, Default)]
pub struct Lines(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    kept: VecDeque<String>,
    /// How many have been dropped from the front: the number of the first one kept.
    dropped: usize,
    open_streams: usize,
}

impl Lines {
    /// Reads `stream` to its end on a thread of its own. Bytes that are not text are replaced.
    pub fn follow(&self, stream: impl Read + Send + 'static) {
        self.lock().open_streams += 1;
        let lines = self.clone();
        thread::spawn(move || {
            let mut stream = BufReader::new(stream);
            let mut line = Vec::new();
            while matches!(stream.read_until(b'\n', &mut line), Ok(read) if read > 0) {
                lines.push(String::from_utf8_lossy(&line).trim_end().to_owned());
                line.clear();
            }
            lines.lock().open_streams -= 1;
            lines.0.changed.notify_all();
        });
    }

    /// Waits until every stream has ended, at most for `limit`. The last output of a process may still arrive
    /// after its end. The limit is needed because a child that it left may keep a stream open.
    pub fn wait_ended(&self, limit: Duration) {
        let state = self.lock();
        let ended = self.0.changed.wait_timeout_while(state, limit, |state| state.open_streams > 0);
        drop(ended);
    }

    /// How many lines have arrived. The next line has this number.
    #[must_use]
    pub fn mark(&self) -> usize {
        let state = self.lock();
        state.dropped + state.kept.len()
    }

    /// The lines from number `mark` on that are still kept.
    #[must_use]
    pub fn since(&self, mark: usize) -> Vec<String> {
        let state = self.lock();
        state.kept.iter().skip(mark.saturating_sub(state.dropped)).cloned().collect()
    }

    /// The first line from number `mark` on that `wanted` accepts. Waits for it if necessary.
    ///
    /// # Panics
    /// At the deadline, and as soon as every stream has ended without such a line.
    #[track_caller]
    pub fn wait_for(&self, mark: usize, deadline: Duration, wanted: impl Fn(&str) -> bool) -> String {
        let since = Instant::now();
        let mut next = mark;
        let mut state = self.lock();
        loop {
            let skip = next.saturating_sub(state.dropped);
            if let Some(line) = state.kept.iter().skip(skip).find(|line| wanted(line)) {
                return line.clone();
            }
            next = state.dropped + state.kept.len();
            let left = deadline.saturating_sub(since.elapsed());
            let ended = state.open_streams == 0;
            if ended || left.is_zero() {
                drop(state);
                let why = if ended { "its output has ended" } else { "the deadline has passed" };
                panic!(
                    "no such line after {:.1?} ({why}); the last lines:\n{}",
                    since.elapsed(),
                    self.tail()
                );
            }
            let woken = self.0.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// The last lines, for a failure message.
    #[must_use]
    pub fn tail(&self) -> String {
        let state = self.lock();
        let skip = state.kept.len().saturating_sub(SHOWN);
        state.kept.iter().skip(skip).map(|line| format!("  | {line}\n")).collect()
    }

    fn push(&self, line: String) {
        let mut state = self.lock();
        if state.kept.len() == KEPT {
            state.kept.pop_front();
            state.dropped += 1;
        }
        state.kept.push_back(line);
        drop(state);
        self.0.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(5);

    #[test]
    fn a_line_that_has_arrived_and_one_that_comes_later_are_both_found() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let lines = Lines::default();
        lines.follow(reader);
        std::io::Write::write_all(&mut writer, b"one\ntwo\n").expect("the reader lives");
        assert_eq!(lines.wait_for(0, SOON, |line| line == "two"), "two");
        let mark = lines.mark();
        let late = thread::spawn(move || std::io::Write::write_all(&mut writer, b"one again\n"));
        assert_eq!(lines.wait_for(mark, SOON, |line| line.starts_with("one")), "one again");
        late.join().expect("the writer").expect("the reader lives");
    }

    #[test]
    #[should_panic(expected = "its output has ended")]
    fn the_end_of_the_output_ends_the_wait_at_once() {
        let lines = Lines::default();
        lines.follow(&b"alone\n"[..]);
        lines.wait_for(0, Duration::from_secs(3600), |line| line == "never");
    }

    #[test]
    fn after_the_wait_for_the_end_every_line_is_there() {
        let (reader, mut writer) = std::io::pipe().expect("a pipe");
        let lines = Lines::default();
        lines.follow(reader);
        lines.wait_ended(Duration::ZERO);
        let writing = thread::spawn(move || {
            (0..1_000).try_for_each(|number| {
                std::io::Write::write_all(&mut writer, format!("{number}\n").as_bytes())
            })
        });
        lines.wait_ended(SOON);
        assert_eq!(lines.since(0).last().map(String::as_str), Some("999"));
        writing.join().expect("the writer").expect("the reader lives");
    }

    #[test]
    fn bytes_that_are_not_text_do_not_stop_reading_and_old_lines_are_dropped() {
        let lines = Lines::default();
        lines.follow(&b"\xff\xfe\nlast\n"[..]);
        assert_eq!(lines.wait_for(0, SOON, |line| line == "last"), "last");
        for number in 0..KEPT {
            lines.push(number.to_string());
        }
        assert_eq!(lines.since(0).len(), KEPT);
        assert_eq!(lines.mark(), KEPT + 2);
    }
}
