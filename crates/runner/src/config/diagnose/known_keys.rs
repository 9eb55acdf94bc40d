//! Which keys and tables a file may have, as far as it matters for what is shown of the file.

use super::key_path::KeyPath;
use super::lines::{header_before, line_of, normal_header};
use super::telling::{is_telling, is_telling_text};

/// Whether a message may quote the value of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exposure {
    /// Never: it is a secret.
    Never,
    /// Only where the file is TOML. In a broken file such text may run on into other lines.
    InToml,
    /// Always: such a value is never a secret.
    Always,
}

/// The keys and tables that are known. Where the file is not TOML no parser says what a line is; a
/// guess is then good enough to name a key, and never good enough to show a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownKeys {
    /// Whether a name stands at the top of a file.
    pub(crate) is_table: fn(&str) -> bool,
    /// The rule for the value of a key; `None` for a key that is not known.
    pub(crate) exposure: fn(&str) -> Option<Exposure>,
}

impl KnownKeys {
    /// Whether the value of this key is a secret, by its name alone.
    pub(crate) fn is_secret(self, key: &str) -> bool {
        match (self.exposure)(key) {
            Some(exposure) => exposure == Exposure::Never,
            None => is_telling(key),
        }
    }

    /// Whether a line may be shown whatever the parser makes of it.
    pub(crate) fn is_plain(self, line: &str) -> bool {
        let is_plain_key = self.key_of(line).and_then(self.exposure) == Some(Exposure::Always);
        let sets_plain = is_plain_key && line.split_once('=').is_some_and(|(_, value)| is_one_value(value));
        let harmless = sets_plain || self.is_header(line) || !line.chars().any(char::is_alphanumeric);
        harmless && !is_telling_text(line)
    }

    /// The known key that a line sets.
    pub(crate) fn key_of(self, line: &str) -> Option<&str> {
        let key = line.split_once('=')?.0.trim();
        (self.exposure)(key).map(|_| key)
    }

    /// The key that the line at `at` sets, below the header above it. A key that is not known is left
    /// out: it may be the middle of a secret.
    pub(crate) fn key_at(self, text: &str, at: usize) -> KeyPath {
        let header = line_of(text, header_before(text, at));
        let table = match self.is_header(header) {
            true => KeyPath::parse(&normal_header(header)),
            false => KeyPath::default(),
        };
        match self.key_of(line_of(text, at)) {
            Some(key) => table.child(key),
            None => table,
        }
    }

    /// Whether the line is the header of a known table, with or without its closing bracket.
    fn is_header(self, line: &str) -> bool {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.[] \"'".contains(c);
        let header = normal_header(line);
        let ends = match line.split_once(']') {
            Some((_, after)) => is_end(after.trim_start_matches(']')),
            None => true,
        };
        let known = (self.is_table)(header.split('.').next().unwrap_or_default());
        known && ends && line.split('#').next().unwrap_or_default().chars().all(allowed)
    }
}

/// Whether a text after `=` is one plain value. Where a line end is missing, the next key and its secret
/// stand on the same line.
fn is_one_value(text: &str) -> bool {
    let text = text.trim();
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => match text[1..].split_once(quote) {
            Some((_, after)) => is_end(after),
            None => !text.contains('='),
        },
        _ => {
            let bare = text.split('#').next().unwrap_or_default();
            // A time may have one blank.
            let words = bare.split_whitespace().count();
            words <= 2 && bare.chars().all(|c| c.is_ascii_alphanumeric() || " -:+._".contains(c))
        }
    }
}

/// Whether nothing follows on the line, apart from a comment. Comments are judged by themselves.
fn is_end(text: &str) -> bool {
    text.trim().is_empty() || text.trim_start().starts_with('#')
}

#[cfg(test)]
mod tests {
    use crate::config::keys::KNOWN_KEYS;

    #[test]
    fn only_lines_that_are_known_to_be_harmless_are_plain() {
        for plain in [
            "[jobs.a",
            "[lock]",
            "[[jobs]] # all",
            "every = 30",
            "at = 2026-06-01 00:00:00Z # once",
            "overlap = \"skip\" # why",
            "  schedule = \"* *",
            "]",
            "",
            "  },",
        ] {
            assert!(KNOWN_KEYS.is_plain(plain), "{plain:?}");
        }
        for doubtful in [
            "url = 'x",
            "x = 1",
            "secret''",
            "'a',",
            "[secret",
            "ttl = 'redis://u:p@h",
            "# password: x",
            "description = 'x",
            "timeout = '5m'params = { env = { A = 'x' } }",
            "timeout = 5m params = 'x'",
            "timeout = '5m params = x",
            "timeout = '5m' x",
            "[jobs.a]x",
            "[jobs.a] x = 1",
        ] {
            assert!(!KNOWN_KEYS.is_plain(doubtful), "{doubtful:?}");
        }
    }

    #[test]
    fn a_key_is_named_when_it_is_one_of_ours() {
        let text = "[jobs.a]\nevery = 5\nhunter2 = 1\n[hunter2]\nttl = 3\n";
        let key = |line: &str| KNOWN_KEYS.key_at(text, text.find(line).expect("there")).to_string();
        assert_eq!(key("every"), "jobs.a.every");
        assert_eq!(key("hunter2 ="), "jobs.a");
        assert_eq!(key("ttl"), "ttl");
    }

    #[test]
    fn a_key_of_the_table_is_judged_by_its_row_and_another_by_its_name() {
        for secret in ["url", "token", "password", "pasword", "API-KEY", "my_secret_thing"] {
            assert!(KNOWN_KEYS.is_secret(secret), "{secret}");
        }
        for harmless in ["kind", "timeout", "description", "colour"] {
            assert!(!KNOWN_KEYS.is_secret(harmless), "{harmless}");
        }
    }
}
