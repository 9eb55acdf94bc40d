//! Parses the text, and reports why it is not TOML.

use std::ops::Range;

use toml::de::DeTable;

use super::duplicate;
use super::findings::{Finding, Findings, Spot};
use super::known_keys::KnownKeys;
use super::lines::{header_before, line_of};

/// How far a tree may be relied on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Health {
    /// It has everything that the text says, except the second of two equal keys.
    Readable,
    /// The text is not TOML. What a parser finds in the rest would be noise.
    Broken,
}

/// A text as TOML.
#[derive(Debug)]
pub(crate) struct Parsed<'t> {
    pub(crate) tree: DeTable<'t>,
    pub(crate) health: Health,
    /// Values that the text has and the tree lacks.
    pub(crate) left_out: Vec<Range<usize>>,
}

/// The tree of `text`. What is wrong with the text is reported.
pub(crate) fn parse<'t>(text: &'t str, known_keys: KnownKeys, findings: &Findings) -> Parsed<'t> {
    let (tree, errors) = DeTable::parse_recoverable(text);
    let mut parsed = Parsed { tree: tree.into_inner(), health: Health::Readable, left_out: Vec::new() };
    let mut broken_line = None;
    let mut repeated_header = None;
    for error in errors {
        let bytes = error.span().unwrap_or(0..0);
        let at = bytes.start.min(text.len());
        if error.message() == "duplicate key" {
            let header = header_before(text, at);
            let is_header = line_of(text, at).trim_start().starts_with('[');
            parsed.left_out.push(duplicate::value(text, known_keys, bytes.end));
            // Every key of a repeated table is a duplicate too; one problem for the table is enough.
            if is_header || repeated_header != Some(header) {
                findings.problem(duplicate::finding(text, bytes, is_header));
            }
            repeated_header = is_header.then_some(header).or(repeated_header);
            continue;
        }
        // Further errors on the same line mostly follow from the first.
        let line = line_of(text, at);
        if broken_line == Some(line.as_ptr()) {
            continue;
        }
        broken_line = Some(line.as_ptr());
        let (message, hint) = if error.message().starts_with("string values must be quoted") {
            let bare = text.get(bytes.clone()).filter(|_| known_keys.is_plain(line));
            ("text needs quotes".to_owned(), bare.map(|bare| format!("write \"{bare}\"")))
        } else {
            parsed.health = Health::Broken;
            (format!("this is not TOML: {}", error.message()), None)
        };
        findings.problem(Finding {
            path: known_keys.key_at(text, at),
            spot: Spot::Bytes(bytes),
            message,
            hint,
        });
    }
    parsed
}
