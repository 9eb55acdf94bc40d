//! What a line of the file seems to say, where no parser can tell: for files with mistakes in their
//! TOML. A guess is good enough to name a key, and never enough to show a value.

use super::key_path::KeyPath;
use super::telling::is_telling_text;

/// Keys whose values are worth seeing and are no secret.
const PLAIN_KEYS: [&str; 31] = [
    "namespace",
    "timezone",
    "max_concurrent",
    "shutdown_grace",
    "format",
    "level",
    "retention",
    "migrate",
    "pooler",
    "listen",
    "schedule",
    "every",
    "at",
    "kind",
    "timeout",
    "ttl",
    "max_renewals",
    "kill_grace",
    "overlap",
    "misfire",
    "start_deadline",
    "max_catchup",
    "delivery",
    "max_attempts",
    "max_crashes",
    "backoff",
    "guard",
    "on_unavailable",
    "shards",
    "jitter",
    "enabled",
];

/// Other keys that may be named.
const KNOWN_KEYS: [&str; 4] = ["url", "token", "description", "params"];

/// The sections, and what stands above every job.
const TABLES: [&str; 7] = ["runner", "log", "lock", "ledger", "admin", "defaults", "jobs"];

/// The key that the line at `at` sets, below the header above it; without what is not known to be
/// a key, which may be the middle of a secret.
pub(crate) fn key_at(text: &str, at: usize) -> KeyPath {
    let header = line_of(text, header_before(text, at));
    let table = if is_header(header) { KeyPath::parse(&normal_header(header)) } else { KeyPath::default() };
    match key_of(line_of(text, at)) {
        Some(key) => table.child(key),
        None => table,
    }
}

/// Whether a line may be shown whatever the parser makes of it.
pub(crate) fn plain_line(line: &str) -> bool {
    let sets_plain = key_of(line).is_some_and(|key| PLAIN_KEYS.contains(&key));
    (sets_plain || is_header(line) || !line.chars().any(char::is_alphanumeric)) && !is_telling_text(line)
}

/// The known key that a line sets.
pub(crate) fn key_of(line: &str) -> Option<&str> {
    let key = line.split_once('=')?.0.trim();
    (PLAIN_KEYS.contains(&key) || KNOWN_KEYS.contains(&key)).then_some(key)
}

/// Whether the line is the header of one of our tables, closed or not.
fn is_header(line: &str) -> bool {
    let fine =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '[' | ']' | ' ' | '"' | '\'');
    let header = normal_header(line);
    TABLES.contains(&header.split('.').next().unwrap_or_default()) && line.trim().chars().all(fine)
}

/// The line that holds the byte `at`.
pub(crate) fn line_of(text: &str, at: usize) -> &str {
    text[line_start(text, at)..].split('\n').next().unwrap_or_default()
}

/// Where the header of the table that holds the byte `at` begins; 0 above the first header.
pub(crate) fn header_before(text: &str, at: usize) -> usize {
    let mut start = line_start(text, at);
    while start > 0 && !line_of(text, start).trim_start().starts_with('[') {
        start = line_start(text, start - 1);
    }
    start
}

/// Where the line that holds the byte `at` begins.
pub(crate) fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// `[ jobs . "a" ]` as `jobs.a`; empty when the line is no header.
pub(crate) fn normal_header(line: &str) -> String {
    let Some(inner) = line.trim().strip_prefix('[') else { return String::new() };
    let inner = inner.trim_start_matches('[').split(']').next().unwrap_or_default();
    inner.chars().filter(|c| !c.is_whitespace() && !matches!(c, '"' | '\'')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_are_known_to_be_harmless_are_plain() {
        for plain in ["[jobs.a", "[lock]", "every = 30", "  schedule = \"* *", "]", "", "  },"] {
            assert!(plain_line(plain), "{plain:?}");
        }
        for doubtful in
            ["url = 'x", "x = 1", "secret''", "'a',", "[secret", "ttl = 'redis://u:p@h", "# password: x"]
        {
            assert!(!plain_line(doubtful), "{doubtful:?}");
        }
    }

    #[test]
    fn a_key_is_named_when_it_is_one_of_ours() {
        let text = "[jobs.a]\nevery = 5\nhunter2 = 1\n[hunter2]\nttl = 3\n";
        let key = |line: &str| key_at(text, text.find(line).expect("there")).to_string();
        assert_eq!(key("every"), "jobs.a.every");
        assert_eq!(key("hunter2 ="), "jobs.a");
        assert_eq!(key("ttl"), "ttl");
    }
}
