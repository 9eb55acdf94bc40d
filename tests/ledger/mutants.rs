//! Each condition of the statements, taken out: a test must fail. The conditions stand beside the statements, in
//! `NAME.conditions.toml`.

use std::path::{Path, PathBuf};

use testbed::{
    Conditions, Mutant, PrivatePostgres, Spare, assert_every_mutant_is_caught, assert_lists, condition_rows,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Which ledger's statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dialect {
    Postgres,
    Sqlite,
}

const DIALECTS: [Dialect; 2] = [Dialect::Postgres, Dialect::Sqlite];

impl Dialect {
    const fn word(self) -> &'static str {
        match self {
            Self::Postgres => "postgres",
            Self::Sqlite => "sqlite",
        }
    }

    /// The folder of its statements.
    fn statements(self) -> String {
        format!("crates/runner/src/ledger/{}/sql", self.word())
    }

    /// The conditions of its schema, then those of its statements.
    fn conditions(self) -> Vec<Conditions> {
        let folders = [format!("migrations/{}", self.word()), self.statements()];
        folders.iter().flat_map(|folder| Conditions::in_folder(&root(), folder, "sql")).collect()
    }

    /// The full name of a test: the suite is one text, and runs over each ledger.
    fn test_named(self, test: &str) -> String {
        match test.strip_prefix("conformance::") {
            Some(claim) => format!("conformance::{}::{claim}", self.word()),
            None => test.to_owned(),
        }
    }
}

fn every_mutant_is_caught(dialect: Dialect) {
    let conditions = dialect.conditions();
    let mutants: Vec<Mutant> =
        conditions.iter().flat_map(|of| of.mutants(|test| dialect.test_named(test))).collect();
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

/// The conditions of the statement in `file` that are in none of these texts.
fn left_out(file: &str, statement: &str, texts: &[&str]) -> Vec<String> {
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
            format!("{file}:{line}: {condition}")
        })
        .collect()
}

#[test]
fn every_condition_of_a_statement_is_taken_out_by_a_mutant_or_said_to_be_spare() {
    let mut missing = Vec::new();
    for dialect in DIALECTS {
        let folder = dialect.statements();
        let entries = root().join(&folder).read_dir().unwrap().map(|entry| entry.unwrap().file_name());
        let names = entries.map(|name| name.to_str().unwrap().to_owned());
        let mut statements: Vec<_> = names.filter(|name| name.ends_with(".sql")).collect();
        statements.sort();
        assert!(statements.len() > 30, "{statements:?}");
        let conditions = dialect.conditions();
        for name in statements {
            let file = format!("{folder}/{name}");
            let texts = conditions.iter().flat_map(Conditions::texts).filter(|(place, _)| *place == file);
            let texts: Vec<_> = texts.map(|(_, text)| text).collect();
            let statement = std::fs::read_to_string(root().join(&file)).unwrap();
            missing.extend(left_out(&file, &statement, &texts));
        }
    }
    assert!(
        missing.is_empty(),
        "list each in the .conditions.toml beside its statement:\n{}\n",
        missing.join("\n")
    );
}

#[test]
fn a_condition_that_is_left_out_is_found() {
    let statement = "-- AND what\nDELETE FROM a WHERE b = 1\n  AND (c OR d IN (SELECT 1)) -- AND e\nON CONFLICT DO NOTHING";
    let found: Vec<_> = beginnings(statement).into_iter().map(|at| &statement[at..=at]).collect();
    assert_eq!(found, ["b", "c", "d"]);
    let statement = "WHERE id = $2\n  AND fence = $3\n  AND other = 1";
    let left_out = left_out("heartbeat.sql", statement, &["id = $2", "AND fence = $3"]);
    assert_eq!(left_out, ["heartbeat.sql:3: other = 1"]);
}

#[test]
fn the_page_lists_every_condition_and_the_test_that_fails_without_it() {
    let page = root().join("docs/mutants.md");
    let conditions = DIALECTS.map(Dialect::conditions);
    let rows = condition_rows(&[&conditions[0], &conditions[1]], "tests/ledger");
    assert_lists(&page, "| condition of a statement |", &rows);
    let mut spare = Vec::new();
    for (dialect, conditions) in DIALECTS.into_iter().zip(&conditions) {
        for of in conditions {
            spare.extend(of.spares.iter().map(|spare| spare_row(dialect, of.name(), spare)));
        }
    }
    assert_lists(&page, "| spare condition |", &spare);
}

fn spare_row(dialect: Dialect, name: &str, spare: &Spare) -> String {
    let texts: Vec<_> = spare.texts.iter().map(|text| format!("{name}: `{text}`")).collect();
    format!("| {} | {} | {} |", texts.join("; "), dialect.word(), spare.covered)
}
