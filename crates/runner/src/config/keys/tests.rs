//! A key that is forgotten in one place is found here: in the page, in the readers, in the JSON.

use std::path::Path;

use super::row::Row;
use super::{DefaultValue, INNER, Keys, SECTIONS, backoff, job};
use crate::config::{Config, ConfigErrors, Environment};

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    std::fs::read_to_string(page).expect("the page")
}

/// The part of the page about one table.
fn part<'a>(page: &'a str, table: &str) -> &'a str {
    let heading = match table {
        "defaults" | "backoff" => "## `[jobs.NAME]`".to_owned(),
        section => format!("## `[{section}]`"),
    };
    let (_, rest) = page.split_once(&heading).unwrap_or_else(|| panic!("no heading {heading}"));
    rest.split("\n## ").next().unwrap_or(rest)
}

/// How the page names a key.
fn on_page(keys: Keys, row: &Row) -> String {
    match INNER.iter().any(|inner| inner.name == keys.name) {
        true => format!("{}.{}", keys.name, row.name),
        false => row.name.to_owned(),
    }
}

/// The line of the page about one key.
fn line(keys: Keys, row: &Row) -> String {
    let default = match row.default {
        DefaultValue::Toml(value) => format!("`{value}`"),
        DefaultValue::Words(words) => words.to_owned(),
    };
    let name = format!("`{}`", on_page(keys, row));
    let cells = [name.as_str(), row.takes, &default, row.meaning, row.refuses];
    let cells = cells.map(|cell| if cell.is_empty() { " ".to_owned() } else { format!(" {cell} ") });
    format!("|{}|", cells.join("|"))
}

fn load(text: &str) -> Result<Config, ConfigErrors> {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("jobs.toml");
    std::fs::write(&path, text).expect("written");
    let kinds: &[&str] = &["command"];
    Config::load(&path, &Environment::default(), &kinds, &|_| Ok(()))
}

#[test]
fn every_key_has_its_row_in_the_page() {
    let page = page();
    let mut missing = String::new();
    for keys in SECTIONS.iter().chain(&INNER) {
        for row in keys.rows {
            let line = line(*keys, row);
            if !part(&page, keys.name).lines().any(|found| found == line) {
                missing.push_str(&format!("\n[{}]\n{line}", keys.name));
            }
        }
    }
    assert!(missing.is_empty(), "docs/configuration.md lacks:\n{missing}");
}

#[test]
fn every_row_of_the_page_is_a_key() {
    let page = page();
    for section in SECTIONS {
        let tables =
            || std::iter::once(section).chain(INNER.into_iter().filter(|_| section.name == "defaults"));
        let names: Vec<String> =
            tables().flat_map(|keys| keys.rows.iter().map(move |row| on_page(keys, row))).collect();
        let lines = part(&page, section.name).lines().filter(|line| line.starts_with("| `"));
        for line in lines.filter(|line| line.split('|').count() == 7) {
            let name = line.split('`').nth(1).unwrap_or_default();
            assert!(names.iter().any(|known| known == name), "[{}] has no key {name}", section.name);
        }
    }
}

#[test]
fn every_key_of_the_table_is_read() {
    let job = "[jobs.a]\nevery = \"5s\"\nkind = \"command\"\n";
    // No key takes a list of lists.
    let mut files = Vec::new();
    for row in backoff::KEYS.rows {
        let name = row.name;
        files.push((format!("jobs.a.backoff.{name}"), format!("{job}backoff = {{ {name} = [[]] }}\n")));
    }
    for section in SECTIONS {
        for name in section.names() {
            let own = match section.name {
                "defaults" => format!("[jobs.b]\n{name} = [[]]\n"),
                section => format!("[{section}]\n{name} = [[]]\n"),
            };
            let table = if section.name == "defaults" { "jobs.b" } else { section.name };
            files.push((format!("{table}.{name}"), format!("{job}{own}")));
        }
    }
    for (key, text) in files {
        let errors = load(&text).expect_err(&key);
        let of_key: Vec<_> = errors.problems().iter().filter(|problem| problem.key == key).collect();
        assert!(!of_key.is_empty(), "{key} is not read: {errors}");
        assert!(of_key.iter().all(|problem| !problem.message.contains("unknown key")), "{errors}");
    }
}

#[test]
fn every_key_of_a_job_is_in_the_json_of_check() {
    // The rule is shown as `schedule`, whichever key it has; params may hold secrets.
    let elsewhere = [job::EVERY.name(), job::AT.name(), job::PARAMS.name()];
    for row in job::KEYS.rows {
        assert_eq!(row.json.is_none(), elsewhere.contains(&row.name), "{}", row.name);
        let named_after =
            row.json.is_none_or(|(name, _)| name.strip_suffix("_ms").unwrap_or(name) == row.name);
        assert!(named_after, "{}", row.name);
    }
}

#[test]
fn a_name_that_stands_in_two_tables_has_one_rule_for_quoting() {
    let tables = || SECTIONS.iter().chain(&INNER);
    for row in tables().flat_map(|keys| keys.rows) {
        for other in tables().filter_map(|keys| keys.row(row.name)) {
            assert_eq!(row.exposure, other.exposure, "{}", row.name);
        }
    }
}
