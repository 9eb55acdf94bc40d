//! The doors of the house, held by a test that reads the sources.
//!
//! Each rule is a function from the project to what breaks it; each has a test over the project,
//! and planted breaches that it must find.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod circles;
mod crates;
mod documents;
mod files;
mod names;
mod public;
mod reading;
mod rooms;
mod source;
mod sql_words;
mod words;

use source::{Source, project, rust_under};

/// A rule: what in the project breaks it, and what to do about each.
type Rule = fn(&[Source]) -> Vec<String>;

#[track_caller]
fn holds(rule: Rule) {
    let breaches = rule(project());
    assert!(breaches.is_empty(), "\n{}\n", breaches.join("\n"));
}

/// How many breaches a rule finds in a project of one file.
fn planted(rule: Rule, path: &str, text: &str) -> usize {
    rule(&[Source::new(path, text)]).len()
}

/// The Rust that users run: no tests, and nothing that only tests use.
fn product(project: &[Source]) -> impl Iterator<Item = &Source> {
    let crates = ["crates/lockcore/src/", "crates/runner/src/"];
    crates.into_iter().flat_map(|sources| rust_under(project, sources))
}

#[test]
fn the_rules_see_the_whole_project() {
    for path in [
        "crates/lockcore/src/lib.rs",
        "crates/runner/src/lib.rs",
        "Cargo.toml",
        ".ci/run",
        "tests/house/main.rs",
    ] {
        assert!(project().iter().any(|source| source.path == path), "{path} is not seen");
    }
    assert!(product(project()).count() > 10);
    assert!(!project().iter().any(|source| source.path.contains("target/")));
}
