//! A key or a table that stands in the file twice, said in our words with both places.

use std::ops::Range;

use super::findings::{Finding, Spot};
use super::key_path::KeyPath;
use super::lines::{header_before, line_of, line_start, normal_header, plain_line};

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

/// Where the value of the repeated key lies that ends at `key_end`: to the end of its line, and over
/// lines that begin no key and no table. Nothing else is known of it, so it is better not shown.
pub(crate) fn value(text: &str, key_end: usize) -> Range<usize> {
    let line_end = key_end + text[key_end..].find('\n').unwrap_or(text.len() - key_end);
    let start = match text[key_end..line_end].find('=') {
        Some(equals) if !plain_line(line_of(text, key_end)) => key_end + equals + 1,
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

/// The number (from 1) of the first line within `bytes` that `is` the one; the last, begun line is
/// the repetition itself and does not count.
fn first_line(text: &str, bytes: Range<usize>, is: impl Fn(&str) -> bool) -> Option<usize> {
    let above = text[..bytes.start].matches('\n').count();
    let lines = text[bytes.start..line_start(text, bytes.end).max(bytes.start)].lines();
    lines.map(is).position(|found| found).map(|position| above + position + 1)
}
