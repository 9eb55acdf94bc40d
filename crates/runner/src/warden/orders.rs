//! The warden's end of the pipe from the runner.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::{Errno, read};
use serde::de::DeserializeOwned;

use super::message;

/// Reads lines from the pipe. It reads the descriptor directly: `std` would read ahead into a buffer, and
/// `poll` would not report data that is already there.
#[derive(Debug)]
pub(super) struct Orders<Fd> {
    pipe: Fd,
    unread: Vec<u8>,
    open: bool,
}

impl<Fd: AsFd> Orders<Fd> {
    pub(super) fn new(pipe: Fd) -> Self {
        Self { pipe, unread: Vec::new(), open: true }
    }

    /// The pipe, for `poll`; `None` once the runner is gone.
    pub(super) fn pipe(&self) -> Option<BorrowedFd<'_>> {
        self.open.then(|| self.pipe.as_fd())
    }

    /// Whether the runner is gone.
    pub(super) fn is_closed(&self) -> bool {
        !self.open
    }

    /// Waits for the next message; `None` if the runner is gone before the message was complete.
    pub(super) fn wait<M: DeserializeOwned>(&mut self) -> io::Result<Option<M>> {
        loop {
            if let Some(message) = self.next()? {
                return Ok(Some(message));
            }
            if !self.open {
                return Ok(None);
            }
            self.fill()?;
        }
    }

    /// Reads once. Does not block if `poll` has reported data.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        let mut chunk = [0; 4096];
        match read(&self.pipe, &mut chunk) {
            Ok(0) => self.open = false,
            Ok(length) => self.unread.extend(&chunk[..length]),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// The next message that has arrived completely.
    pub(super) fn next<M: DeserializeOwned>(&mut self) -> io::Result<Option<M>> {
        let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
        let line: Vec<u8> = self.unread.drain(..=end).collect();
        message::read(&line).map(Some)
    }
}
