//! A key or a table that stands in the file twice, said in our words with both places.

use std::ops::Range;

use super::findings::{Finding, Spot};
use super::key_path::KeyPath;

/// What to say about the repeated key at `bytes`, which `is_header` or sets a value.
///
/// The parser does not tell where the key stood first, so the lines above are searched: for a
/// header all of them, for a key those of its own table.
pub(crate) fn finding(text: &str, bytes: Range<usize>, is_header: bool) -> Finding {
    let key = text.get(bytes.clone()).unwrap_or_default();
    let header = header_before(text, bytes.start);
    let table = normal_header(line_of(text, header));
    let (path, first) = if is_header {
        let same = |line: &str| normal_header(line) == table;
        (KeyPath::parse(&table), first_line(text, 0..bytes.start, same))
    } else {
        let same = |line: &str| line.split('=').next().is_some_and(|before| before.trim() == key);
        let path = KeyPath::parse(&table).child(key.trim_matches(['"', '\'']));
        (path, first_line(text, header..bytes.start, same))
    };
    let is_job = is_header && matches!(path.segments(), [jobs, _] if jobs == "jobs");
    let name = path.segments().last().map(String::as_str).unwrap_or(key);
    let what = match (is_job, is_header) {
        (true, _) => format!("the job {name:?} is declared twice"),
        (_, true) => format!("[{path}] stands here a second time"),
        _ => format!("{name} is set twice"),
    };
    let message = match first {
        Some(first) => format!("{what}, first on line {first}"),
        None => what,
    };
    let hint = if is_job {
        "the name is the job's identity in the lock and in the ledger: rename or remove one of the two"
    } else {
        "keep one of the two"
    };
    Finding { path, spot: Spot::Bytes(bytes), message, hint: Some(hint.to_owned()) }
}

/// The key that the line at `at` sets, as far as its text tells: for a file that is no TOML.
pub(crate) fn key_at(text: &str, at: usize) -> KeyPath {
    let line = line_of(text, at);
    let table = KeyPath::parse(&normal_header(line_of(text, header_before(text, at))));
    match line.split_once('=') {
        Some((key, _)) if !line.trim_start().starts_with(['[', '#']) => {
            table.below(KeyPath::parse(&key.replace(char::is_whitespace, "")).segments())
        }
        _ => table,
    }
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

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

/// `[ jobs . "a" ]` as `jobs.a`; empty when the line is no header.
fn normal_header(line: &str) -> String {
    let Some(inner) = line.trim().strip_prefix('[') else { return String::new() };
    let inner = inner.trim_start_matches('[').split(']').next().unwrap_or_default();
    inner.chars().filter(|c| !c.is_whitespace() && !matches!(c, '"' | '\'')).collect()
}

/// The number (from 1) of the first line within `bytes` that `is` the one; the last, begun line is
/// the repetition itself and does not count.
fn first_line(text: &str, bytes: Range<usize>, is: impl Fn(&str) -> bool) -> Option<usize> {
    let above = text[..bytes.start].matches('\n').count();
    let lines = text[bytes.start..line_start(text, bytes.end).max(bytes.start)].lines();
    lines.map(is).position(|found| found).map(|position| above + position + 1)
}
