//! A key or a table that is in the file twice: the message names both lines.

use std::ops::Range;

use super::findings::{Finding, Spot};
use super::key_path::KeyPath;
use super::known_keys::KnownKeys;
use super::lines::{header_before, line_of, line_start, normal_header};

/// The problem of the repeated key at `bytes`, which is a header (`is_header`) or sets a value.
///
/// The parser does not say where the key was first, so the lines above are searched: all of them for a
/// header, those of its own table for a key.
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
        (_, true) => format!("[{path}] is declared twice"),
        _ => format!("{name} is set twice"),
    };
    let message = match first {
        Some(first) => format!("{what}, first on line {first}"),
        None => what,
    };
    let hint = if is_job {
        "rename or remove one of the two: the name identifies the job in the lock and in the ledger"
    } else {
        "remove one of the two"
    };
    Finding { path, spot: Spot::Bytes(bytes), message, hint: Some(hint.to_owned()) }
}

/// The bytes of the value of a repeated key that ends at `key_end`: to the end of its line, and the
/// lines below that begin neither a key nor a table. The tree does not have the value, so no rule says
/// whether it may be shown: it is hidden.
pub(crate) fn value(text: &str, known_keys: KnownKeys, key_end: usize) -> Range<usize> {
    let line_end = key_end + text[key_end..].find('\n').unwrap_or(text.len() - key_end);
    let start = match text[key_end..line_end].find('=') {
        Some(equals) if !known_keys.is_plain(line_of(text, key_end)) => key_end + equals + 1,
        _ => return line_end..line_end,
    };
    let mut end = line_end;
    for line in text[line_end..].split_inclusive('\n').skip(1) {
        if line.trim_start().starts_with('[') || line.contains('=') {
            break;
        }
        end += line.len();
    }
    start..end
}

/// The number (from 1) of the first line within `bytes` for which `is` holds. The last line, where
/// `bytes` end, is the repetition itself and does not count.
fn first_line(text: &str, bytes: Range<usize>, is: impl Fn(&str) -> bool) -> Option<usize> {
    let above = text[..bytes.start].matches('\n').count();
    let lines = text[bytes.start..line_start(text, bytes.end).max(bytes.start)].lines();
    lines.map(is).position(|found| found).map(|position| above + position + 1)
}
