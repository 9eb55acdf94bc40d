//! Finds the place of a dotted key: a line of the file, or a variable of the environment.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use toml::de::{DeTable, DeValue};

use super::findings::{Finding, Spot};
use super::key_path::KeyPath;
use super::known_keys::KnownKeys;
use super::mask::Mask;
use super::problem::{Place, Problem, Quote};

/// The text of the file, and which keys the environment set instead.
#[derive(Clone)]
pub struct SourceMap {
    file: String,
    text: Arc<str>,
    /// Where each line starts: a file of many jobs may have many problems.
    lines: Arc<[usize]>,
    variables: BTreeMap<KeyPath, String>,
    secrets: BTreeSet<String>,
    known_keys: KnownKeys,
}

impl SourceMap {
    /// The map of `text`, which was read from `file`.
    pub(crate) fn new(file: String, text: Arc<str>, known_keys: KnownKeys) -> Self {
        let after_newline = text.match_indices('\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(after_newline).collect();
        let (variables, secrets) = (BTreeMap::new(), BTreeSet::new());
        Self { file, text, lines, variables, secrets, known_keys }
    }

    /// The same, knowing which variable set which key.
    pub(crate) fn with_variables(self, variables: BTreeMap<KeyPath, String>) -> Self {
        Self { variables, ..self }
    }

    /// The same, knowing which texts no problem may show.
    pub(crate) fn with_secrets(self, secrets: BTreeSet<String>) -> Self {
        Self { secrets, ..self }
    }

    /// The file, as it was named.
    #[must_use]
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The text of the file.
    pub(crate) fn text(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    /// A problem with the value of `key` (dotted, `jobs.a.params.argv`), at the line where it
    /// stands, or at the nearest key above it that does. Secrets in `message` are hidden.
    #[must_use]
    pub fn problem_at(&self, key: &str, message: impl Into<String>, hint: Option<String>) -> Problem {
        let finding = Finding { path: KeyPath::parse(key), spot: Spot::Value, message: message.into(), hint };
        self.problem(finding)
    }

    /// The problem that a finding makes, after the load.
    pub(crate) fn problem(&self, finding: Finding) -> Problem {
        let tree = DeTable::parse_recoverable(&self.text).0;
        let mask = self.mask(tree.get_ref());
        self.place(tree.get_ref(), &mask, finding)
    }

    /// The mask of this file's secrets.
    pub(crate) fn mask(&self, tree: &DeTable<'_>) -> Mask {
        Mask::of(tree, self.known_keys, &self.secrets)
    }

    /// Looks up the place of a finding. `tree` is the tree of this map's text.
    pub(crate) fn place(&self, tree: &DeTable<'_>, mask: &Mask, finding: Finding) -> Problem {
        let Finding { path, spot, message, hint } = finding;
        let place = match spot {
            Spot::Variable(name) => Place::Variable { name },
            Spot::File => Place::File { file: self.file.clone() },
            Spot::Bytes(bytes) => self.line(mask, bytes),
            Spot::Key | Spot::Value => match self.variable(&path) {
                Some(name) => Place::Variable { name: name.to_owned() },
                None => match locate(tree, path.segments(), spot == Spot::Key) {
                    Some(bytes) => self.line(mask, bytes),
                    None => Place::File { file: self.file.clone() },
                },
            },
        };
        Problem {
            key: path.to_string(),
            place,
            message: mask.scrub(&message),
            hint: hint.map(|hint| mask.scrub(&hint)),
        }
    }

    fn variable(&self, path: &KeyPath) -> Option<&str> {
        // A variable is not to blame for a whole section: the path must go on below it.
        let set_by = |(set, _): &(&KeyPath, &String)| path.segments().len() > 1 && set.touches(path);
        self.variables.iter().find(set_by).map(|(_, name)| name.as_str())
    }

    fn line(&self, mask: &Mask, bytes: Range<usize>) -> Place {
        let text = &*self.text;
        let start = floor(text, bytes.start);
        let line = self.lines.partition_point(|line_start| *line_start <= start);
        let line_start = self.lines[line - 1];
        let rest = text[line_start..].split('\n').next().unwrap_or_default();
        let line_end = line_start + rest.trim_end_matches('\r').len();
        let start = start.min(line_end);
        let (shown, from, to) =
            mask.line(text, line_start..line_end, start, bytes.end.clamp(start, line_end));
        Place::Line {
            file: self.file.clone(),
            line,
            column: text[line_start..start].chars().count() + 1,
            quote: Quote { text: shown, from, to },
        }
    }
}

/// Shows the file's name only: its text may hold secrets.
impl fmt::Debug for SourceMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SourceMap({})", self.file)
    }
}

/// The start of the character that holds `position`.
fn floor(text: &str, position: usize) -> usize {
    let mut position = position.min(text.len());
    while !text.is_char_boundary(position) {
        position -= 1;
    }
    position
}

/// The bytes of the value at `path`, or of the nearest key above it. Of a table the key is underlined:
/// its own bytes are a header, or many lines.
fn locate(tree: &DeTable<'_>, path: &[String], wants_key: bool) -> Option<Range<usize>> {
    let (first, rest) = path.split_first()?;
    let (key, value) = tree.get_key_value(first.as_str())?;
    let is_it = rest.is_empty() && !wants_key && !value.get_ref().is_table();
    let here = if is_it { value.span() } else { key.span() };
    Some(locate_below(value.get_ref(), rest, wants_key).unwrap_or(here))
}

fn locate_below(value: &DeValue<'_>, path: &[String], wants_key: bool) -> Option<Range<usize>> {
    match value {
        DeValue::Table(table) => locate(table, path, wants_key),
        DeValue::Array(items) => {
            let (first, rest) = path.split_first()?;
            let item = items.get(first.parse::<usize>().ok()?)?;
            Some(locate_below(item.get_ref(), rest, wants_key).unwrap_or(item.span()))
        }
        _ => None,
    }
}
