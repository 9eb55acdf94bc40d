//! What must not be shown of the file: which bytes of it, and which texts wherever they turn up.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use toml::de::{DeTable, DeValue};
use unicode_width::UnicodeWidthChar;

use super::known_keys::KnownKeys;
use super::telling::{is_telling, is_telling_text};

/// Stands where a secret was.
const HIDDEN: &str = "***";

/// Tables in the params of a kind whose values are never shown: they are handed to the work.
const PRIVATE_TABLES: [&str; 2] = ["env", "headers"];

/// Knows the secrets of one file.
pub(crate) struct Mask {
    known_keys: KnownKeys,
    spans: Vec<Range<usize>>,
    words: BTreeSet<String>,
    asked: HashMap<String, bool>,
    strict: bool,
}

impl Mask {
    /// The secrets written in `tree`, and `resolved`: those that came from elsewhere.
    pub(crate) fn of(tree: &DeTable<'_>, known_keys: KnownKeys, resolved: &BTreeSet<String>) -> Self {
        let mut mask = Self {
            known_keys,
            spans: Vec::new(),
            words: resolved.clone(),
            asked: HashMap::new(),
            strict: false,
        };
        mask.search(tree, false);
        let passwords: Vec<String> = mask.words.iter().filter_map(|word| password(word)).collect();
        mask.words.extend(passwords);
        mask.spans.sort_by_key(|span| span.start);
        mask
    }

    /// The same, hiding these bytes too.
    pub(crate) fn hiding(mut self, spans: impl IntoIterator<Item = Range<usize>>) -> Self {
        self.spans.extend(spans);
        self.spans.sort_by_key(|span| span.start);
        self
    }

    /// For a file that is not TOML, whose tree may lack any secret: hides everything that is not known
    /// to be harmless.
    pub(crate) fn strict(self) -> Self {
        Self { strict: true, ..self }
    }

    fn search(&mut self, table: &DeTable<'_>, private: bool) {
        for (key, value) in table {
            let key = key.get_ref();
            let holds_private = PRIVATE_TABLES.contains(&key.as_ref()) && value.get_ref().is_table();
            let private = private || holds_private || self.tells(key);
            self.look_at(value, private);
        }
    }

    /// [`KnownKeys::is_secret`], asked once per key: a file of many jobs repeats a few keys many times.
    fn tells(&mut self, key: &str) -> bool {
        if let Some(known) = self.asked.get(key) {
            return *known;
        }
        let tells = self.known_keys.is_secret(key);
        self.asked.insert(key.to_owned(), tells);
        tells
    }

    fn look_at(&mut self, value: &toml::Spanned<DeValue<'_>>, private: bool) {
        match value.get_ref() {
            DeValue::Table(table) => {
                // `{ env = "NAME" }` says where the secret is, and is no secret.
                let reference = table.len() == 1 && (table.contains_key("env") || table.contains_key("file"));
                self.search(table, private && !reference);
            }
            DeValue::Array(items) => items.iter().for_each(|item| self.look_at(item, private)),
            DeValue::String(text) if private || is_telling_text(text) => {
                self.words.insert(text.clone().into_owned());
                self.spans.push(value.span());
            }
            _ if private => self.spans.push(value.span()),
            _ => {}
        }
    }

    /// One line of the file as it may be shown, with the columns (from 0) of its bytes `from..to`.
    pub(crate) fn line(
        &self,
        text: &str,
        line: Range<usize>,
        from: usize,
        to: usize,
    ) -> (String, usize, usize) {
        let before = self.spans.partition_point(|span| span.end <= line.start);
        let mut hidden: Vec<Range<usize>> =
            self.spans[before..].iter().take_while(|span| span.start < line.end).cloned().collect();
        hidden.extend(self.telling_comment(text, &line, &hidden));
        if self.strict && !self.is_plain(&text[line.clone()]) {
            hidden = std::iter::once(self.doubtful_part(text, &line)).collect();
        }
        let mut shown = String::new();
        let mut width = 0;
        let (mut first, mut last) = (None, None);
        let mut skip_to = line.start;
        for (offset, c) in text[line.clone()].char_indices() {
            let at = line.start + offset;
            if at < skip_to {
                continue;
            }
            let (piece, columns, end) = match hidden.iter().find(|span| span.contains(&at)) {
                Some(span) => (HIDDEN.to_owned(), HIDDEN.len(), span.end.min(line.end)),
                None => (visible(c).to_string(), columns_of(c), at + c.len_utf8()),
            };
            if first.is_none() && from < end {
                first = Some(width);
            }
            shown.push_str(&piece);
            width += columns;
            if last.is_none() && to <= end {
                last = Some(width);
            }
            skip_to = end;
        }
        let first = first.unwrap_or(width);
        (shown, first, last.unwrap_or(width).max(first + 1))
    }

    /// The comment of a line, if it may hold a secret: people keep an old value as a comment.
    fn telling_comment(
        &self,
        text: &str,
        line: &Range<usize>,
        hidden: &[Range<usize>],
    ) -> Option<Range<usize>> {
        let signs = text[line.clone()].match_indices('#').map(|(at, _)| line.start + at);
        let mut comments =
            signs.filter(|at| !hidden.iter().any(|span| span.contains(at))).map(|at| at..line.end);
        comments.find(|comment| {
            let comment = &text[comment.clone()];
            is_telling(comment) || is_telling_text(comment) || self.scrub(comment) != comment
        })
    }

    fn is_plain(&self, line: &str) -> bool {
        self.known_keys.is_plain(line) && self.scrub(line) == line
    }

    /// What is hidden of a line of a broken file: the value of a key that is known, otherwise all of it.
    fn doubtful_part(&self, text: &str, line: &Range<usize>) -> Range<usize> {
        let shown = &text[line.clone()];
        let equals = shown.find('=').filter(|_| self.known_keys.key_of(shown).is_some());
        equals.map_or(line.start, |equals| line.start + equals + 1)..line.end
    }

    /// A text without the secrets in it. A message may quote a value: the message of a kind, for one.
    pub(crate) fn scrub(&self, text: &str) -> String {
        let mut scrubbed = text.to_owned();
        // Longest first: a secret may hold another.
        let mut words: Vec<&String> = self.words.iter().filter(|word| word.chars().count() > 2).collect();
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        for word in words {
            scrubbed = scrubbed.replace(word.as_str(), HIDDEN);
            let escaped = word.escape_debug().to_string();
            scrubbed = scrubbed.replace(&escaped, HIDDEN);
        }
        scrubbed
    }
}

/// The password within an address.
fn password(address: &str) -> Option<String> {
    let (userinfo, _) = address.split_once("://")?.1.rsplit_once('@')?;
    userinfo.split_once(':').map(|(_, password)| password.to_owned())
}

/// The character as it is shown: control characters would reach the terminal of the reader.
fn visible(c: char) -> char {
    match c {
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        c => c,
    }
}

/// How many columns a terminal gives to a character.
fn columns_of(c: char) -> usize {
    // `None` is a control character, which is shown as a replacement of one column.
    c.width().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::keys::KNOWN_KEYS;

    fn shown(text: &str, strict: bool) -> Vec<String> {
        let tree = DeTable::parse_recoverable(text).0;
        let mask = Mask::of(tree.get_ref(), KNOWN_KEYS, &BTreeSet::new());
        let mask = if strict { mask.strict() } else { mask };
        let mut start = 0;
        let mut lines = Vec::new();
        for line in text.split('\n') {
            lines.push(mask.line(text, start..start + line.len(), start, start).0);
            start += line.len() + 1;
        }
        lines
    }

    #[test]
    fn a_secret_is_hidden_and_its_neighbours_are_not() {
        assert_eq!(shown("url = 'redis://h/' # why", false), ["url = *** # why"]);
        assert_eq!(shown("a = ['x', 'pg://u:pw@h/d']", false), ["a = ['x', ***]"]);
        assert_eq!(
            shown("p = { env = { A = 'b' }, argv = ['c'] }", false),
            ["p = { env = { A = *** }, argv = ['c'] }"]
        );
        assert_eq!(shown("token = { env = 'NAME' }", false), ["token = { env = 'NAME' }"]);
        assert_eq!(shown("password = 12345", false), ["password = ***"]);
        assert_eq!(shown("ttl = 5 # was 9", false), ["ttl = 5 # was 9"]);
        assert_eq!(shown("ttl = 5 # url = redis://:pw@h", false), ["ttl = 5 ***"]);
    }

    #[test]
    fn a_secret_over_several_lines_is_hidden_on_each() {
        assert_eq!(shown("token = '''one\ntwo'''\nx = 1", false), ["token = ***", "***", "x = 1"]);
    }

    #[test]
    fn a_broken_line_is_hidden_as_a_whole_when_it_may_hold_a_secret() {
        assert_eq!(shown("url = 'redis://u:S3CRET@h", true), ["url =***"]);
        assert_eq!(shown("every = 'abc", true), ["every = 'abc"]);
        assert_eq!(shown("S3CRET", true), ["***"]);
    }

    #[test]
    fn columns_are_those_of_what_is_shown() {
        let text = "说 = 'x', url = 'abcdef'";
        let tree = DeTable::parse_recoverable("url = 1").0;
        let mut mask = Mask::of(tree.get_ref(), KNOWN_KEYS, &BTreeSet::new());
        let at = text.find("'abcdef'").expect("there");
        mask.spans = std::iter::once(at..text.len()).collect();
        assert_eq!(
            mask.line(text, 0..text.len(), at, text.len()),
            ("说 = 'x', url = ***".to_owned(), 16, 19)
        );
    }

    #[test]
    fn messages_lose_every_secret_longest_first() {
        let words = BTreeSet::from(["hunter2".to_owned(), "hunter2-and-more".to_owned(), "ab".to_owned()]);
        let mask = Mask::of(&DeTable::new(), KNOWN_KEYS, &words);
        assert_eq!(mask.scrub("got \"hunter2-and-more\" and hunter2, ab"), "got \"***\" and ***, ab");
    }
}
