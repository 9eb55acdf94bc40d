//! What happened in a world, in order; and a number that tells two histories apart.

use super::plan::Tick;

/// A history: always its digest, its lines only when somebody wants to read them.
#[derive(Debug)]
pub(crate) struct Trace {
    digest: u64,
    lines: Option<Vec<(Tick, String)>>,
}

impl Trace {
    pub(crate) fn new(readable: bool) -> Self {
        Self { digest: 0xCBF2_9CE4_8422_2325, lines: readable.then(Vec::new) }
    }

    /// Something happened at, or to, a replica. The details are for readers only.
    pub(crate) fn note(&mut self, at: Tick, what: &str, replica: usize, details: impl FnOnce() -> String) {
        self.mix(at);
        self.mix(replica as u64);
        what.bytes().for_each(|byte| self.mix(u64::from(byte)));
        if let Some(lines) = &mut self.lines {
            let line = format!("{:>3}.{:03} [{replica}] {what} {}", at / 1_000, at % 1_000, details());
            lines.push((at, line));
        }
    }

    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    /// What happened, in the world's time: some replicas live ahead of others.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines = self.lines.clone().unwrap_or_default();
        lines.sort_by_key(|(at, _)| *at);
        lines.into_iter().map(|(_, line)| line).collect()
    }

    fn mix(&mut self, value: u64) {
        self.digest = (self.digest ^ value).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(17);
    }
}
