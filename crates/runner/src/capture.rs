//! What is kept of what a run prints or says: the end of it, within a limit.

use std::collections::VecDeque;

/// The last bytes of a stream, and how many were let go before them.
///
/// The end is kept and not the beginning, because that is where a program says why it stopped.
#[derive(Debug)]
pub(crate) struct Capture {
    tail: VecDeque<u8>,
    limit: usize,
    cut: u64,
}

impl Capture {
    /// Keeps at most `limit` bytes; memory grows with what is kept, not with what is printed.
    pub(crate) fn new(limit: usize) -> Self {
        Self { tail: VecDeque::new(), limit, cut: 0 }
    }

    /// Takes the next bytes of the stream.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let kept = bytes.len().min(self.limit);
        let (dropped, bytes) = bytes.split_at(bytes.len() - kept);
        let excess = (self.tail.len() + kept).saturating_sub(self.limit);
        self.tail.drain(..excess);
        self.tail.extend(bytes);
        self.cut += (dropped.len() + excess) as u64;
    }

    /// What is kept, as text that a ledger can store; `None` if nothing was printed.
    pub(crate) fn text(&self) -> Option<String> {
        let bytes: Vec<u8> = self.tail.iter().copied().collect();
        if self.cut == 0 {
            return (!bytes.is_empty()).then(|| legible(&bytes));
        }
        // The cut may have gone through a character: its other half would read as rubbish.
        let torn = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
        Some(format!("[{} bytes cut]\n{}", self.cut + torn as u64, legible(&bytes[torn..])))
    }
}

/// The end of `text`, within `limit` bytes, as [`Capture`] would keep it.
pub(crate) fn tail_of(text: String, limit: usize) -> String {
    if text.len() <= limit {
        return text;
    }
    let mut capture = Capture::new(limit);
    capture.push(text.as_bytes());
    capture.text().unwrap_or_default()
}

/// Lossy UTF-8 without NUL, which PostgreSQL refuses in text: the run could never be settled.
pub(crate) fn legible(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).replace('\0', "\u{FFFD}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(limit: usize, chunks: &[&[u8]]) -> Option<String> {
        let mut capture = Capture::new(limit);
        chunks.iter().for_each(|chunk| capture.push(chunk));
        assert!(capture.tail.len() <= limit);
        capture.text()
    }

    #[test]
    fn a_text_longer_than_its_limit_keeps_its_end_and_says_how_much_is_gone() {
        assert_eq!(tail_of("0123".into(), 4), "0123");
        assert_eq!(tail_of("0123456789".into(), 4), "[6 bytes cut]\n6789");
        assert_eq!(tail_of("\u{20AC}\u{20AC}".into(), 4), "[3 bytes cut]\n\u{20AC}");
    }

    #[test]
    fn output_within_the_limit_is_kept_whole() {
        assert_eq!(captured(8, &[]), None);
        assert_eq!(captured(8, &[b"one ", b"two."]).unwrap(), "one two.");
    }

    #[test]
    fn output_over_the_limit_keeps_its_end_and_says_how_much_is_gone() {
        assert_eq!(captured(4, &[b"abc", b"def"]).unwrap(), "[2 bytes cut]\ncdef");
        assert_eq!(captured(4, &[b"abcdefgh"]).unwrap(), "[4 bytes cut]\nefgh");
        assert_eq!(captured(4, &[b"ab", b"cdefghij", b"k"]).unwrap(), "[7 bytes cut]\nhijk");
        assert_eq!(captured(0, &[b"abc"]).unwrap(), "[3 bytes cut]\n");
    }

    #[test]
    fn a_character_that_the_cut_goes_through_is_cut_whole() {
        assert_eq!(captured(4, &["x€yz".as_bytes()]).unwrap(), "[4 bytes cut]\nyz");
    }

    #[test]
    fn bytes_that_are_no_text_become_replacement_characters() {
        assert_eq!(captured(16, &[b"a\xFFb\0c"]).unwrap(), "a\u{FFFD}b\u{FFFD}c");
    }
}
