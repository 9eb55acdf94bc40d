//! Each condition of the statements, taken out: a test must notice.

use std::path::{Path, PathBuf};

use testbed::{Cut, Mutant, PrivatePostgres, assert_every_mutant_is_caught, assert_lists};

use crate::conditions::{CONDITIONS, Condition, Dialect, SPARE, Spare, Taken};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

impl Dialect {
    const fn word(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        }
    }

    /// Where a statement stands, from the root of the workspace.
    fn file(self, name: &str) -> String {
        let dialect = self.word();
        match name {
            "0001_ledger" => format!("migrations/{dialect}/{name}.sql"),
            _ => format!("crates/runner/src/ledger/{dialect}/sql/{name}.sql"),
        }
    }
}

impl Taken {
    fn cuts(&self) -> Vec<Cut> {
        let pieces = std::iter::once(&self.first).chain(self.also);
        pieces.map(|&(file, text, put)| Cut { file: self.dialect.file(file), text, put }).collect()
    }
}

impl Condition {
    /// The full name of its test over a ledger. Some are about one of them only.
    fn test_over(&self, dialect: Dialect) -> String {
        let of_postgres_only = ["in_flight::", "servers::"].iter().any(|room| self.test.starts_with(room));
        if of_postgres_only {
            format!("postgres::{}", self.test)
        } else if self.test.contains("::in_") {
            format!("conformance::{}", self.test)
        } else {
            format!("conformance::{}::{}", dialect.word(), self.test)
        }
    }

    fn mutants(&self, dialect: Dialect) -> impl Iterator<Item = Mutant> {
        let taken = self.taken.iter().filter(move |taken| taken.dialect == dialect);
        taken.map(move |taken| Mutant { cuts: taken.cuts(), test: self.test_over(dialect) })
    }
}

fn every_mutant_is_caught(dialect: Dialect) {
    let mutants: Vec<_> = CONDITIONS.iter().flat_map(|condition| condition.mutants(dialect)).collect();
    let server = match dialect {
        Dialect::Postgres => Some(PrivatePostgres::shared()),
        Dialect::Sqlite => None,
    };
    assert_every_mutant_is_caught(&root(), &mutants, server);
}

#[test]
fn a_test_notices_when_a_condition_of_postgresql_is_missing() {
    every_mutant_is_caught(Dialect::Postgres);
}

#[test]
fn a_test_notices_when_a_condition_of_sqlite_is_missing() {
    every_mutant_is_caught(Dialect::Sqlite);
}

/// Where the conditions of a statement begin: behind each WHERE, ON, AND and OR that is not in a comment. Of
/// a query in a condition, those of the query count.
fn beginnings(statement: &str) -> Vec<usize> {
    let mut found = Vec::new();
    let mut line_start = 0;
    for line in statement.split_inclusive('\n') {
        let code = line.split("--").next().unwrap_or_default();
        let mut at = 0;
        for word in code.split([' ', '\n', '(']) {
            let end = at + word.len();
            let rest = code[end..].trim_start_matches([' ', '(', '\n']);
            let is_other = ["CONFLICT", "DELETE", "COMMIT"].iter().any(|other| rest.starts_with(other));
            if ["WHERE", "ON", "AND", "OR"].contains(&word) && !is_other {
                let condition = statement[line_start + end..].trim_start_matches([' ', '(', '\n']);
                let is_query =
                    ["EXISTS (", "NOT EXISTS (", "id IN ("].iter().any(|query| condition.starts_with(query));
                if !is_query {
                    found.push(statement.len() - condition.len());
                }
            }
            at = end + 1;
        }
        line_start += line.len();
    }
    found
}

/// Statements that decide nothing: they make tables, clean up, or tell the time.
const WITHOUT_CONDITIONS: [&str; 3] = ["migrations_", "now", "effect_cleanse"];

/// The conditions of a statement that no mutant lacks and that are not said to be spare.
fn left_out(dialect: Dialect, name: &str, statement: &str) -> Vec<String> {
    let taken =
        CONDITIONS.iter().flat_map(|condition| condition.taken).filter(|taken| taken.dialect == dialect);
    let taken = taken.flat_map(|taken| std::iter::once(&taken.first).chain(taken.also));
    let spare = SPARE.iter().filter(|spare| spare.dialect == dialect).flat_map(|spare| spare.conditions);
    let texts: Vec<_> = taken
        .filter(|(file, ..)| *file == name)
        .map(|(_, text, _)| *text)
        .chain(spare.filter(|(file, _)| *file == name).map(|(_, text)| *text))
        .collect();
    let ranges: Vec<_> = texts
        .iter()
        .flat_map(|text| statement.match_indices(text).map(|(at, text)| at..at + text.len()))
        .collect();
    let unlisted =
        beginnings(statement).into_iter().filter(|at| !ranges.iter().any(|range| range.contains(at)));
    unlisted
        .map(|at| {
            let line = 1 + statement[..at].matches('\n').count();
            let condition = statement[at..].lines().next().unwrap_or_default();
            format!("{}/{name}.sql:{line}: {condition}", dialect.word())
        })
        .collect()
}

#[test]
fn every_condition_of_a_statement_is_taken_out_by_a_mutant_or_said_to_be_spare() {
    let mut missing = Vec::new();
    for dialect in [Dialect::Postgres, Dialect::Sqlite] {
        let folder = root().join(dialect.file("firing")).with_file_name("");
        let mut files: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        assert!(files.len() > 30, "{files:?}");
        for path in files {
            let name = path.file_stem().and_then(|name| name.to_str()).unwrap();
            if !WITHOUT_CONDITIONS.iter().any(|other| name.starts_with(other)) {
                missing.extend(left_out(dialect, name, &std::fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "give each a mutant in tests/ledger/conditions.rs:\n{}\n",
        missing.join("\n")
    );
}

#[test]
fn a_condition_that_is_left_out_is_found() {
    let statement = "-- AND what\nDELETE FROM a WHERE b = 1\n  AND (c OR d IN (SELECT 1)) -- AND e\nON CONFLICT DO NOTHING";
    let found: Vec<_> = beginnings(statement).into_iter().map(|at| &statement[at..=at]).collect();
    assert_eq!(found, ["b", "c", "d"]);
    assert_eq!(
        left_out(Dialect::Postgres, "heartbeat", "WHERE id = $2 AND fence = $3 AND other = 1").len(),
        1
    );
}

#[test]
fn the_page_lists_every_condition_and_the_test_that_fails_without_it() {
    let page = root().join("docs/mutants.md");
    let rows: Vec<_> = CONDITIONS.iter().map(Condition::row).collect();
    assert_lists(&page, "| condition of a statement |", &rows);
    let spare: Vec<_> = SPARE.iter().map(Spare::row).collect();
    assert_lists(&page, "| spare condition |", &spare);
}

impl Condition {
    fn row(&self) -> String {
        let places = |dialect| {
            let mut names: Vec<_> = self
                .taken
                .iter()
                .filter(|taken| taken.dialect == dialect)
                .map(|taken| taken.first.0)
                .collect();
            names.dedup();
            if names.is_empty() { "–".to_owned() } else { names.join(", ") }
        };
        let (room, name) = self.test.rsplit_once("::").unwrap();
        let room = room.split("::").next().unwrap_or_default();
        let folder = if ["in_flight", "servers"].contains(&room) { "postgres" } else { "conformance" };
        format!(
            "| {} | {} | {} | {} | `tests/ledger/{folder}/{room}.rs::{name}` |",
            self.words,
            places(Dialect::Postgres),
            places(Dialect::Sqlite),
            self.without
        )
    }
}

impl Spare {
    fn row(&self) -> String {
        let conditions = self.conditions.iter().map(|(file, text)| format!("{file}: `{text}`"));
        let conditions = conditions.collect::<Vec<_>>().join("; ");
        format!("| {conditions} | {} | {} |", self.dialect.word(), self.covered)
    }
}
