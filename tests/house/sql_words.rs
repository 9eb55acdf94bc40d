//! The words of the statements are those of the program.

use std::collections::BTreeSet;

use crate::holds;
use crate::source::Source;

/// The enums whose words stand in the ledger's rows.
const ENUMS: [&str; 4] = ["State", "Reason", "Origin", "Delivery"];

/// What else stands in quotes: names of settings, tables and sequences, and what SQLite is told about time.
const OTHERS: [&str; 14] = [
    "application_name",
    "client_connection_check_interval",
    "idle_in_transaction_session_timeout",
    "infinity",
    "lock_timeout",
    "runner_fence",
    "runner_firings",
    "runner_migrations",
    "search_path",
    "statement_timeout",
    "subsec",
    "transaction_read_only",
    "transaction_timeout",
    "x",
];

/// The words of `ENUMS`.
fn known_words(project: &[Source]) -> impl Iterator<Item = (&str, &str)> {
    let rust =
        project.iter().filter(|source| source.is_rust() && source.is_under("crates/runner/src/firing"));
    let enums = rust.flat_map(|source| &source.rust().words);
    let enums = enums.filter(|(name, _)| ENUMS.contains(&name.as_str()));
    enums.flat_map(|(name, words)| words.iter().map(move |word| (name.as_str(), word.as_str())))
}

/// The words that stand in quotes in a statement: which, and where.
fn quoted_words(project: &[Source]) -> impl Iterator<Item = (&str, &Source, usize)> {
    let statements = project.iter().filter(|source| source.path.ends_with(".sql"));
    statements.filter(|source| !source.is_under("crates/testbed/")).flat_map(|source| {
        source.text.lines().enumerate().flat_map(move |(index, line)| {
            let code = line.split("--").next().unwrap_or_default();
            let words = code.split('\'').skip(1).step_by(2).filter(|word| is_word(word));
            words.map(move |word| (word, source, index + 1))
        })
    })
}

fn unknown_words(project: &[Source]) -> Vec<String> {
    let known: BTreeSet<&str> = known_words(project).map(|(_, word)| word).collect();
    let unknown = quoted_words(project).filter(|(word, ..)| !known.contains(word) && !OTHERS.contains(word));
    unknown
        .map(|(word, source, line)| {
            source.breach(line, &format!("{word:?} is a word of none of {}", ENUMS.join(", ")))
        })
        .collect()
}

/// What this file excepts although no statement has it.
fn unneeded_exceptions(project: &[Source]) -> Vec<String> {
    let known: BTreeSet<(&str, &str)> = known_words(project).collect();
    let quoted: BTreeSet<&str> = quoted_words(project).map(|(word, ..)| word).collect();
    let is_known = |word: &str| known.iter().any(|(_, known)| *known == word);
    let words = OTHERS.into_iter().filter(|word| !quoted.contains(word) || is_known(word));
    let is_quoted = |name: &str| known.iter().any(|(of, word)| *of == name && quoted.contains(word));
    let enums = ENUMS.into_iter().filter(|name| !is_quoted(name));
    let unneeded = words.chain(enums);
    unneeded.map(|word| format!("tests/house/sql_words.rs: no statement needs {word:?}: remove it")).collect()
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[test]
fn every_word_in_a_statement_is_a_word_of_the_program() {
    holds(unknown_words);
    let enums =
        "words!(pub State { Queued = \"queued\", Lost = \"lost\" });\nwords!(Cause { A = \"drain\" });";
    let planted = |sql: &str| {
        let words = Source::new("crates/runner/src/firing/state.rs", enums);
        unknown_words(&[words, Source::new("crates/runner/src/ledger/postgres/sql/due.sql", sql)]).len()
    };
    assert_eq!(planted("SELECT 'queued', 'lost' -- and no 'other'"), 0);
    assert_eq!(planted("SELECT 'drain' WHERE state = 'waiting' AND $1 = '1 millisecond'"), 2);
}

#[test]
fn an_exception_that_no_statement_needs_is_told() {
    holds(unneeded_exceptions);
    let told = |sql: &str| {
        let words = Source::new("crates/runner/src/firing/state.rs", "words!(pub State { A = \"queued\" });");
        let statement = Source::new("crates/runner/src/ledger/postgres/sql/due.sql", sql);
        unneeded_exceptions(&[words, statement]).len()
    };
    let all = OTHERS.len() + ENUMS.len();
    assert_eq!(told("SELECT 1 -- 'infinity' and 'queued'"), all);
    assert_eq!(told("SELECT 'infinity' WHERE state = 'queued'"), all - 2);
}
