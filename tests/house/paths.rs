//! The paths that Rust code names: `use` trees spread out, and every `a::b` in between.

/// A path and the line it stands in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) line: usize,
    pub(crate) segments: Vec<String>,
}

impl Named {
    pub(crate) fn starts_with(&self, prefix: &[&str]) -> bool {
        self.segments.len() >= prefix.len() && self.segments.iter().zip(prefix).all(|(a, b)| a == b)
    }
}

#[derive(Debug)]
struct Token {
    line: usize,
    text: String,
}

/// All paths of two segments or more in `code` (comments and strings taken out), and all that a
/// `use` names, however short.
pub(crate) fn paths(code: &str) -> Vec<Named> {
    let tokens = tokens(code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at].text == "use" {
            at += 1;
            continue;
        }
        let used = at > 0 && tokens[at - 1].text == "use";
        let start = if tokens[at].text == "::" && used { at + 1 } else { at };
        if used || is_name(&tokens[start].text) {
            let before = found.len();
            let end = tree(&tokens, start, &[], &mut found);
            if !used {
                // A lone name is no path.
                let long = found.split_off(before).into_iter().filter(|named| named.segments.len() > 1);
                found.extend(long.collect::<Vec<_>>());
            }
            at = end.max(at + 1);
        } else {
            at += 1;
        }
    }
    found
}

/// Reads one tree from `at` on, below `prefix`; gives where it ends.
fn tree(tokens: &[Token], mut at: usize, prefix: &[String], found: &mut Vec<Named>) -> usize {
    let mut segments = prefix.to_vec();
    let line = tokens.get(at).map_or(0, |token| token.line);
    while let Some(token) = tokens.get(at) {
        if token.text == "{" {
            at += 1;
            while tokens.get(at).is_some_and(|token| token.text != "}") {
                at = match tokens[at].text.as_str() {
                    "," => at + 1,
                    _ => tree(tokens, at, &segments, found).max(at + 1),
                };
            }
            return at + 1;
        }
        if !is_name(&token.text) && token.text != "*" {
            break;
        }
        segments.push(token.text.clone());
        at += 1;
        match tokens.get(at).map(|token| token.text.as_str()) {
            Some("::") => at += 1,
            Some("as") => {
                at += 2;
                break;
            }
            _ => break,
        }
    }
    if segments.len() > prefix.len() {
        found.push(Named { line, segments });
    }
    at
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn tokens(code: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = match first {
                c if c.is_alphanumeric() || c == '_' => {
                    rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())
                }
                ':' if rest.starts_with("::") => 2,
                c => c.len_utf8(),
            };
            tokens.push(Token { line: index + 1, text: rest[..length].into() });
            rest = rest[length..].trim_start();
        }
    }
    tokens
}

#[test]
fn use_trees_are_spread_out_and_inline_paths_found() {
    let code = "use std::{env, fs::{self, File}, io::Read as _};\nuse redis;\nuse ::chrono::*;\n\
                fn f(x: crate::firing::Fence) { lockcore::Lease::granted(x.y, z::<u8>()) }";
    let mut seen: Vec<String> =
        paths(code).iter().map(|named| format!("{} {}", named.line, named.segments.join("::"))).collect();
    seen.sort();
    let expected = [
        "1 std::env",
        "1 std::fs::File",
        "1 std::fs::self",
        "1 std::io::Read",
        "2 redis",
        "3 chrono::*",
        "4 crate::firing::Fence",
        "4 lockcore::Lease::granted",
    ];
    assert_eq!(seen, expected);
}
