//! The CHECK lists of the tables hold the words of the program: each of them, and no other.
//!
//! The lists are read from a database after all its migrations, because a later migration may replace a list.
//! A reason has no list: a newer program may write new reasons without a migration.

use std::collections::BTreeSet;

use runner::internal::firing::{Delivery, Origin, State, Vocabulary};
use sqlx::{Connection as _, PgConnection, SqliteConnection};

use crate::fixture::sqlite::Sqlite;
use crate::fixture::{Fixture, Postgres};

/// A column, and the words that its CHECK allows.
type List = (String, BTreeSet<String>);

fn list<T: Vocabulary>(column: &str) -> List {
    (column.to_owned(), T::ALL.iter().map(|word| word.word().to_owned()).collect())
}

/// What the tables have to allow. A new list needs a line here: the enum that its column holds.
fn lists_of_the_program() -> Vec<List> {
    vec![list::<Delivery>("delivery"), list::<Origin>("origin"), list::<State>("state")]
}

/// The lists among the CHECKs of these definitions, by column. A list names words and one column only:
/// `CHECK (state <> 'queued' OR due_at IS NOT NULL)` is none.
fn lists(definitions: &[String], columns: &BTreeSet<String>) -> Vec<List> {
    let mut lists: Vec<List> = Vec::new();
    for check in definitions.iter().flat_map(|definition| checks(definition)) {
        let parts = || check.split('\'').enumerate();
        let words: BTreeSet<String> =
            parts().filter(|(n, _)| n % 2 == 1).map(|(_, word)| word.to_owned()).collect();
        let code: String = parts().filter(|(n, _)| n % 2 == 0).map(|(_, code)| format!("{code} ")).collect();
        let names = code.split(|c: char| !c.is_alphanumeric() && c != '_');
        let named: BTreeSet<&str> = names.filter(|name| columns.contains(*name)).collect();
        if let (Some(column), 1, false) = (named.first(), named.len(), words.is_empty()) {
            lists.push(((*column).to_owned(), words));
        }
    }
    lists.sort();
    lists
}

/// What stands in the brackets of each CHECK.
fn checks(definition: &str) -> Vec<String> {
    let lines = definition.lines().map(|line| line.split("--").next().unwrap_or_default());
    let code = lines.collect::<Vec<_>>().join(" ");
    code.split("CHECK").skip(1).map(|rest| in_brackets(rest).to_owned()).collect()
}

/// The text up to the bracket that closes the first one.
fn in_brackets(text: &str) -> &str {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return &text[..at],
            ')' => depth -= 1,
            _ => {}
        }
    }
    text
}

#[tokio::test]
async fn the_lists_of_postgresql_hold_every_word_and_no_other() {
    let database = Postgres::new();
    let _ledger = database.open("lists").await;
    let mut direct = PgConnection::connect(&database.direct()).await.unwrap();
    let checks = "SELECT pg_get_constraintdef(oid) FROM pg_constraint
                  WHERE contype = 'c' AND conrelid::regclass::text LIKE 'runner%'";
    let columns = "SELECT column_name::text FROM information_schema.columns WHERE table_name LIKE 'runner%'";
    let checks: Vec<String> = sqlx::query_scalar(checks).fetch_all(&mut direct).await.unwrap();
    let columns: Vec<String> = sqlx::query_scalar(columns).fetch_all(&mut direct).await.unwrap();
    assert_eq!(lists(&checks, &columns.into_iter().collect()), lists_of_the_program());
}

#[tokio::test]
async fn the_lists_of_sqlite_hold_every_word_and_no_other() {
    let database = Sqlite::new();
    let _ledger = database.open("lists").await;
    let mut direct = SqliteConnection::connect(&database.direct()).await.unwrap();
    let tables = "SELECT sql FROM sqlite_master WHERE type = 'table' AND name LIKE 'runner%'";
    let columns =
        "SELECT columns.name FROM sqlite_master AS tables, pragma_table_info(tables.name) AS columns
                   WHERE tables.type = 'table' AND tables.name LIKE 'runner%'";
    let tables: Vec<String> = sqlx::query_scalar(tables).fetch_all(&mut direct).await.unwrap();
    let columns: Vec<String> = sqlx::query_scalar(columns).fetch_all(&mut direct).await.unwrap();
    assert_eq!(lists(&tables, &columns.into_iter().collect()), lists_of_the_program());
}

#[test]
fn a_list_is_told_from_other_checks() {
    let columns = ["state", "reason", "due_at", "only_row"].map(str::to_owned).into();
    let read = |definition: &str| lists(&[definition.to_owned()], &columns);
    let list = |column: &str, words: &[&str]| {
        (column.to_owned(), words.iter().map(|word| (*word).to_owned()).collect::<BTreeSet<_>>())
    };
    let table = "CREATE TABLE runner_firings (
        state text NOT NULL,  -- CHECK (state IN ('not this'))
        only_row integer CHECK (only_row = 1),
        CONSTRAINT a CHECK (state IN ('queued', 'due_at')),
        CONSTRAINT b CHECK (state <> 'queued' OR (due_at IS NOT NULL)),
        CONSTRAINT c CHECK
            (reason IN ('retry')))";
    assert_eq!(read(table), [list("reason", &["retry"]), list("state", &["due_at", "queued"])]);
    let as_postgresql_shows_it = "CHECK ((state = ANY (ARRAY['queued'::text, 'lost'::text])))";
    assert_eq!(read(as_postgresql_shows_it), [list("state", &["lost", "queued"])]);
    let twice = "CHECK (state IN ('queued')) CHECK (state IN ('queued', 'lost'))";
    assert_eq!(read(twice), [list("state", &["lost", "queued"]), list("state", &["queued"])]);
}
