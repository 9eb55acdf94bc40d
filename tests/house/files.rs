//! How long a file is, what it is called, and how it begins.

use std::collections::BTreeSet;

use crate::source::{Source, project, rust_under};
use crate::{holds, planted};

/// A source file ends before this line, its tests not counted.
const WALL: usize = 400;

/// How long each source file is, its tests not counted.
fn lengths(project: &[Source]) -> impl Iterator<Item = (&Source, usize)> {
    let sources = rust_under(project, "crates/").into_iter().filter(|source| source.path.contains("/src/"));
    sources.map(|source| (source, source.lines_without_tests().count()))
}

fn wall(project: &[Source]) -> Vec<String> {
    let over = lengths(project).filter(|(_, lines)| *lines >= WALL);
    over.map(|(source, lines)| {
        let advice = format!("{lines} lines, {WALL} are too many: look for the second noun in it");
        source.breach(WALL, &advice)
    })
    .collect()
}

#[test]
fn every_source_file_has_less_than_400_lines() {
    for (source, lines) in lengths(project()).filter(|(_, lines)| (350..WALL).contains(lines)) {
        println!("{}: {lines} lines, soon too long", source.path);
    }
    holds(wall);
    let line = "fn f() {}\n";
    assert_eq!(planted(wall, "crates/runner/src/big.rs", &line.repeat(399)), 0);
    assert_eq!(planted(wall, "crates/runner/src/big.rs", &line.repeat(400)), 1);
    assert_eq!(planted(wall, "crates/runner/src/big.rs", &"//! Words.\n".repeat(400)), 1);
    let tested = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", line.repeat(399), line.repeat(500));
    assert_eq!(planted(wall, "crates/runner/src/big.rs", &tested), 0);
    assert_eq!(planted(wall, "tests/ledger/big.rs", &line.repeat(500)), 0);
}

fn nouns(project: &[Source]) -> Vec<String> {
    const BUCKETS: [&str; 12] = [
        "util", "utils", "common", "helper", "helpers", "misc", "types", "models", "model", "stuff", "base",
        "shared",
    ];
    let mut breaches = Vec::new();
    for source in project.iter().filter(|source| source.is_rust()) {
        for part in source.path.trim_end_matches(".rs").split('/') {
            if BUCKETS.contains(&part) || part.starts_with("new_") {
                breaches.push(
                    source
                        .breach(1, &format!("{part:?} says nothing: name the one noun that the file holds")),
                );
            }
        }
    }
    breaches
}

#[test]
fn a_file_is_named_after_what_it_holds() {
    holds(nouns);
    assert_eq!(planted(nouns, "crates/runner/src/utils.rs", ""), 1);
    assert_eq!(planted(nouns, "tests/common/mod.rs", ""), 1);
    assert_eq!(planted(nouns, "crates/runner/src/ledger/new_claim.rs", ""), 1);
    assert_eq!(planted(nouns, "crates/runner/src/firing.rs", ""), 0);
}

fn statements(project: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for source in project.iter().filter(|source| source.path.ends_with(".sql")) {
        let first = source.text.lines().next().unwrap_or_default();
        let name: String = first
            .trim_start_matches("-- ")
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        let is_migration = source.is_under("migrations/");
        if !first.starts_with("-- ") || !is_migration && name != source.stem() {
            let advice = format!("begin with `-- {}`: the database's statistics show it", source.stem());
            breaches.push(source.breach(1, &advice));
        }
    }
    breaches
}

#[test]
fn every_statement_begins_with_its_name() {
    holds(statements);
    assert_eq!(
        planted(statements, "crates/runner/src/ledger/sqlite/claim.sql", "-- claim: the row\nSELECT 1"),
        0
    );
    assert_eq!(planted(statements, "crates/runner/src/ledger/sqlite/claim.sql", "-- claims\nSELECT 1"), 1);
    assert_eq!(planted(statements, "crates/runner/src/ledger/sqlite/claim.sql", "SELECT 1"), 1);
    assert_eq!(planted(statements, "migrations/sqlite/0001_ledger.sql", "-- The ledger.\n"), 0);
    assert_eq!(planted(statements, "migrations/sqlite/0001_ledger.sql", "CREATE TABLE x ()"), 1);
}

fn scripts(project: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for source in project.iter().filter(|source| source.path.ends_with(".lua")) {
        let header: String = source
            .text
            .lines()
            .take_while(|line| line.starts_with("--"))
            .flat_map(|line| [line, "\n"])
            .collect();
        for word in ["KEYS", "ARGV", "Returns"] {
            if !header.contains(word) {
                breaches.push(source.breach(
                    1,
                    &format!("the comment at the top has to say: KEYS, ARGV, Returns ({word} is missing)"),
                ));
            }
        }
    }
    breaches
}

#[test]
fn every_script_says_what_it_takes_and_returns() {
    holds(scripts);
    let good = "-- Takes the lock.\n-- KEYS[1] the lock\n-- ARGV[1] the token\n-- Returns 1\nreturn 1\n";
    assert_eq!(planted(scripts, "crates/lockcore/src/lua/acquire.lua", good), 0);
    assert_eq!(planted(scripts, "crates/lockcore/src/lua/acquire.lua", "return KEYS[1] -- ARGV Returns"), 3);
}

fn dialects(project: &[Source]) -> Vec<String> {
    let names = |dialect: &str| -> BTreeSet<String> {
        let of = |source: &&Source| source.is_under(&format!("migrations/{dialect}/"));
        project.iter().filter(of).map(|source| source.stem().to_owned()).collect()
    };
    let (postgres, sqlite) = (names("postgres"), names("sqlite"));
    let missing = postgres.symmetric_difference(&sqlite);
    missing.map(|name| format!("migrations: {name} is there in one dialect only; it is one ledger")).collect()
}

#[test]
fn both_dialects_have_the_same_migrations() {
    holds(dialects);
    assert_eq!(planted(dialects, "migrations/postgres/9000_pause.sql", "-- pause"), 1);
}
