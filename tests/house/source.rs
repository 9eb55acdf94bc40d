//! A file of the project as the rules see it: with its comments, its strings and its tests told apart.

use std::ops::Range;
use std::path::{Path, PathBuf};

/// What is not ours to judge.
const NOT_OURS: [&str; 2] = ["target", ".git"];

/// One text file, its path relative to the root of the workspace.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.into(), text: text.into() }
    }

    /// Rust without comments, without what stands in quotes, and without its test modules. Lines
    /// keep their numbers.
    pub(crate) fn code(&self) -> String {
        without_tests(&without_comments_and_strings(&self.text))
    }

    /// The text as it is, comments and all, with the lines of its test modules blank.
    pub(crate) fn text_without_tests(&self) -> String {
        let code = without_comments_and_strings(&self.text);
        let line_of = |at: usize| code[..at].matches('\n').count();
        let tests: Vec<_> =
            test_items(&code).into_iter().map(|item| line_of(item.start)..=line_of(item.end)).collect();
        let is_test = |line: &usize| tests.iter().any(|lines| lines.contains(line));
        let lines = self.text.lines().enumerate();
        lines.map(|(index, line)| if is_test(&index) { "\n".into() } else { format!("{line}\n") }).collect()
    }

    /// How many lines it has, its test modules left out.
    pub(crate) fn lines(&self) -> usize {
        let code = without_comments_and_strings(&self.text);
        let in_tests: usize = test_items(&code).into_iter().map(|item| code[item].lines().count()).sum();
        self.text.lines().count() - in_tests
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Product code, as opposed to tests and to what only tests use.
    pub(crate) fn is_product(&self) -> bool {
        self.is_rust() && (self.is_under("crates/runner/src/") || self.is_under("crates/lockcore/src/"))
    }

    pub(crate) fn is_under(&self, prefix: &str) -> bool {
        self.path.starts_with(prefix)
    }

    /// The file's name without its ending.
    pub(crate) fn stem(&self) -> &str {
        Path::new(&self.path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
    }

    /// What is wrong in which line, for the one who has to mend it.
    pub(crate) fn breach(&self, line: usize, advice: &str) -> String {
        format!("{}:{line}: {advice}", self.path)
    }

    /// A breach for every line of `text` that contains `word`, found by `is_in`.
    pub(crate) fn breaches(&self, text: &str, is_in: impl Fn(&str) -> bool, advice: &str) -> Vec<String> {
        let lines = text.lines().enumerate().filter(|(_, line)| is_in(line));
        lines.map(|(index, _)| self.breach(index + 1, advice)).collect()
    }
}

/// Every text file of the project.
pub(crate) fn project() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = Vec::new();
    read_below(&root, &root, &mut sources);
    sources
}

fn read_below(root: &Path, dir: &Path, sources: &mut Vec<Source>) {
    let mut entries: Vec<PathBuf> = dir.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if NOT_OURS.contains(&name) {
            continue;
        }
        if path.is_dir() {
            read_below(root, &path, sources);
        } else if let Ok(text) = std::fs::read_to_string(&path) {
            let path = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            sources.push(Source { path, text });
        }
    }
}

/// Blanks comments and the insides of string and character literals, keeping every line break.
fn without_comments_and_strings(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = match chars[at] {
            '/' if chars.get(at + 1) == Some(&'/') => end_of_line(&chars, at),
            '/' if chars.get(at + 1) == Some(&'*') => end_of_block_comment(&chars, at),
            '"' => end_of_string(&chars, at),
            'r' if starts_raw_string(&chars, at) => end_of_raw_string(&chars, at),
            '\'' => end_of_char_literal(&chars, at),
            _ => at,
        };
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

fn end_of_line(chars: &[char], from: usize) -> usize {
    chars[from..].iter().position(|c| *c == '\n').map_or(chars.len(), |length| from + length)
}

fn end_of_block_comment(chars: &[char], from: usize) -> usize {
    let (mut depth, mut at) = (0, from);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => (depth, at) = (depth + 1, at + 2),
            ('*', Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            return at;
        }
    }
    at
}

fn end_of_string(chars: &[char], from: usize) -> usize {
    let mut at = from + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

fn starts_raw_string(chars: &[char], at: usize) -> bool {
    let before = at.checked_sub(1).map(|before| chars[before]);
    let part_of_a_name = before.is_some_and(|c| c.is_alphanumeric() || c == '_') && before != Some('b');
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    !part_of_a_name && chars.get(at + 1 + hashes) == Some(&'"')
}

fn end_of_raw_string(chars: &[char], from: usize) -> usize {
    let hashes = chars[from + 1..].iter().take_while(|c| **c == '#').count();
    let closes =
        |at: usize| chars[at] == '"' && chars[at + 1..].iter().take_while(|c| **c == '#').count() >= hashes;
    let first = from + hashes + 2;
    (first..chars.len()).find(|at| closes(*at)).map_or(chars.len(), |at| at + 1 + hashes)
}

/// The end of `'x'` or `'\n'`; a lifetime has no end and is left alone.
fn end_of_char_literal(chars: &[char], from: usize) -> usize {
    if chars.get(from + 1) == Some(&'\\') {
        let close = chars[from + 3..].iter().position(|c| *c == '\'');
        return close.map_or(from, |length| from + 3 + length + 1);
    }
    if chars.get(from + 2) == Some(&'\'') { from + 3 } else { from }
}

/// Blanks every item under `#[cfg(test)]`.
fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    for item in test_items(code) {
        let blank: String = code[item.clone()].chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect();
        // From the end, so that the ranges before it stay right.
        out.replace_range(item, &blank);
    }
    out
}

/// Where the items under `#[cfg(test)]` stand, the last one first.
fn test_items(code: &str) -> Vec<Range<usize>> {
    const GATE: &str = "#[cfg(test)]";
    let mut items = Vec::new();
    let mut from = 0;
    while let Some(found) = code[from..].find(GATE) {
        let start = from + found;
        from = start + end_of_item(&code[start..]);
        items.push(start..from);
    }
    items.reverse();
    items
}

/// Up to the semicolon, or to the brace that closes the first one.
fn end_of_item(item: &str) -> usize {
    let mut depth = 0;
    for (at, c) in item.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' => depth -= 1,
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    item.len()
}

#[test]
fn comments_strings_and_tests_are_told_from_code() {
    let text = r##"let a = "re\"dis::x"; // redis::y
/* redis::z /* nested */ redis */ let b = 'r'; let c: &'static str = r#"redis"::"#;
let d = b"redis"; let e = '\''; let f = redis::real;
#[cfg(test)]
mod tests {
    use redis::Client;
    fn inner() { if true {} }
}
#[cfg(test)]
use redis::Other;
fn after() {}"##;
    let code = Source::new("x.rs", text).code();
    assert_eq!(code.matches("redis").count(), 1, "{code}");
    assert_eq!(code.lines().nth(2).unwrap().matches("redis::real").count(), 1);
    assert!(code.contains("&'static str"), "{code}");
    assert_eq!(code.lines().nth(10), Some("fn after() {}"));
}
