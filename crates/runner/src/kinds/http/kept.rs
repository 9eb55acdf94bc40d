//! The part of an answer that is kept: its beginning, up to a limit.

use crate::capture::legible;

/// The first bytes of an answer's body.
///
/// It keeps the beginning and not the end, because the rest is never read. So an endless answer costs neither
/// memory nor time.
#[derive(Debug)]
pub(super) struct Kept {
    head: Vec<u8>,
    limit: usize,
    cut: bool,
}

impl Kept {
    /// Keeps at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { head: Vec::new(), limit, cut: false }
    }

    /// Takes the next bytes; true if there is room for more.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        let room = self.limit - self.head.len();
        self.head.extend(&bytes[..bytes.len().min(room)]);
        self.cut |= bytes.len() > room;
        !self.cut
    }

    /// The kept bytes as text that a ledger can store; `None` if there were none.
    pub(super) fn text(&self) -> Option<String> {
        if !self.cut {
            return (!self.head.is_empty()).then(|| legible(&self.head));
        }
        // The limit may cut a character in two. Its first half is left out, since it is not valid text.
        let partial = self.head.utf8_chunks().last().map_or(0, |last| {
            let at_the_end = last.invalid().len() < 4
                && std::str::from_utf8(last.invalid()).is_err_and(|e| e.error_len().is_none());
            if at_the_end { last.invalid().len() } else { 0 }
        });
        let whole = &self.head[..self.head.len() - partial];
        Some(format!("{}\n[the rest was not read: output_limit is {} bytes]", legible(whole), self.limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(limit: usize, chunks: &[&[u8]]) -> Option<String> {
        let mut kept = Kept::new(limit);
        for chunk in chunks {
            if !kept.push(chunk) {
                break;
            }
        }
        assert!(kept.head.len() <= limit);
        kept.text()
    }

    #[test]
    fn an_answer_within_the_limit_is_kept_whole() {
        assert_eq!(kept(8, &[]), None);
        assert_eq!(kept(8, &[b"one ", b"two."]).unwrap(), "one two.");
        assert_eq!(kept(8, &[b"a\xFFb\0c"]).unwrap(), "a\u{FFFD}b\u{FFFD}c");
    }

    #[test]
    fn an_answer_over_the_limit_keeps_its_beginning_and_says_so() {
        let rest = "[the rest was not read: output_limit is 4 bytes]";
        assert_eq!(kept(4, &[b"abc", b"def"]).unwrap(), format!("abcd\n{rest}"));
        assert_eq!(kept(4, &["ab€z".as_bytes()]).unwrap(), format!("ab\n{rest}"));
        assert_eq!(kept(4, &[b"abc\xFFdef"]).unwrap(), format!("abc\u{FFFD}\n{rest}"));
        assert_eq!(kept(0, &[b"a"]).unwrap(), "\n[the rest was not read: output_limit is 0 bytes]");
    }
}
