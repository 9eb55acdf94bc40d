//! The words of the statements are those of the program.

use std::collections::BTreeSet;

use crate::source::{Source, project};

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

fn unknown_words(project: &[Source]) -> Vec<String> {
    let rust =
        project.iter().filter(|source| source.is_rust() && source.is_under("crates/runner/src/firing"));
    let known: BTreeSet<&str> = rust
        .flat_map(|source| &source.rust().words)
        .filter(|(name, _)| ENUMS.contains(&name.as_str()))
        .flat_map(|(_, words)| words.iter().map(String::as_str))
        .collect();
    let mut breaches = Vec::new();
    for source in
        project.iter().filter(|source| source.path.ends_with(".sql") && !source.is_under("crates/testbed/"))
    {
        for (index, line) in source.text.lines().enumerate() {
            let code = line.split("--").next().unwrap_or_default();
            for word in code.split('\'').skip(1).step_by(2).filter(|word| is_word(word)) {
                if !known.contains(word) && !OTHERS.contains(&word) {
                    let advice = format!("{word:?} is a word of none of {}", ENUMS.join(", "));
                    breaches.push(source.breach(index + 1, &advice));
                }
            }
        }
    }
    breaches
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[test]
fn every_word_in_a_statement_is_a_word_of_the_program() {
    let told = unknown_words(project());
    assert!(told.is_empty(), "\n{}\n", told.join("\n"));
    let enums =
        "words!(pub State { Queued = \"queued\", Lost = \"lost\" });\nwords!(Cause { A = \"drain\" });";
    let planted = |sql: &str| {
        let words = Source::new("crates/runner/src/firing/state.rs", enums);
        unknown_words(&[words, Source::new("crates/runner/src/ledger/postgres/sql/due.sql", sql)]).len()
    };
    assert_eq!(planted("SELECT 'queued', 'lost' -- and no 'other'"), 0);
    assert_eq!(planted("SELECT 'drain' WHERE state = 'waiting' AND $1 = '1 millisecond'"), 2);
}
