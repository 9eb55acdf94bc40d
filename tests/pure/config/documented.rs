//! The page on the configuration knows every key and its default.

use std::path::Path;

use super::desk::{Desk, GOOD, job_with};

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    std::fs::read_to_string(page).expect("the page")
}

/// The part of the page about one section.
fn part<'a>(page: &'a str, section: &str) -> &'a str {
    let heading =
        if section == "defaults" { "## `[jobs.NAME]`".to_owned() } else { format!("## `[{section}]`") };
    let (_, rest) = page.split_once(&heading).unwrap_or_else(|| panic!("no heading {heading}"));
    rest.split("\n## ").next().unwrap_or(rest)
}

/// The keys that a section says it has, when asked for one that it has not.
fn keys(text: &str) -> Vec<String> {
    let problem = Desk::with(text).problems().remove(0);
    let hint = problem.hint.expect("a list of keys");
    let list = hint.strip_prefix("the keys are ").unwrap_or_else(|| panic!("{hint}"));
    list.split(", ").map(str::to_owned).collect()
}

#[test]
fn every_key_has_its_row() {
    let page = page();
    let mut sections = vec![("defaults", keys(&job_with("xxxxxxxx = 1")))];
    for section in ["runner", "log", "lock", "ledger"] {
        sections.push((section, keys(&format!("[{section}]\nxxxxxxxx = 1\n{GOOD}"))));
    }
    sections.push(("admin", keys(&format!("[admin]\nlisten = \"[::1]:9090\"\nxxxxxxxx = 1\n{GOOD}"))));
    for (section, keys) in sections {
        for key in keys {
            assert!(part(&page, section).contains(&format!("\n| `{key}` |")), "no row for {section}.{key}");
        }
    }
}

#[test]
fn every_default_stands_in_its_row() {
    let page = page();
    let defaults: toml::Table =
        include_str!("../../../crates/runner/src/config/defaults.toml").parse().expect("TOML");
    for (section, keys) in &defaults {
        for (key, value) in keys.as_table().expect("a section") {
            let row = part(&page, section).lines().find(|line| line.starts_with(&format!("| `{key}` |")));
            let row = row.unwrap_or_else(|| panic!("no row for {section}.{key}"));
            let cell = row.split('|').nth(3).unwrap_or_default();
            assert!(
                cell.contains(&format!("`{value}`")),
                "{section}.{key} is {value}, and the page says {cell}"
            );
        }
    }
}
