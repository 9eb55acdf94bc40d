//! The page on metrics and what a replica shows are one list.

use std::collections::{BTreeMap, BTreeSet};

use super::exposition::{Labels, Page};

const PAGE: &str = include_str!("../../../docs/metrics.md");

/// A row of the table: the metric's type, and the words of each label.
struct Row {
    kind: String,
    labels: BTreeMap<String, BTreeSet<String>>,
}

fn rows() -> BTreeMap<String, Row> {
    let table = PAGE.lines().skip_while(|line| !line.starts_with("| metric |")).skip(2);
    let rows = table.take_while(|line| line.starts_with('|'));
    let rows: BTreeMap<String, Row> = rows.map(row).collect();
    assert_eq!(rows.len(), 22, "the table of metrics");
    rows
}

fn row(line: &str) -> (String, Row) {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    let mut labels: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut label = String::new();
    for (index, part) in cells[3].split('`').enumerate().filter(|(index, _)| index % 2 == 1) {
        // A word follows its label's colon or a comma; a label begins the cell, or is followed by a colon.
        let after = cells[3].split('`').nth(index + 1).unwrap_or_default();
        if part == "job" || after.trim_start().starts_with(':') {
            part.clone_into(&mut label);
            labels.entry(label.clone()).or_default();
        } else {
            labels.entry(label.clone()).or_default().insert(part.to_owned());
        }
    }
    (format!("runner_{}", cells[1].trim_matches('`')), Row { kind: cells[2].to_owned(), labels })
}

/// Every metric and every word on `page` has its row, and every metric with a row is on the page; but for
/// the gauges that are absent until there is something to say.
#[track_caller]
pub(crate) fn assert_documented(page: &Page) {
    let rows = rows();
    for (name, family) in &page.families {
        let row = rows.get(name).unwrap_or_else(|| panic!("{name} is in no row"));
        assert_eq!(row.kind, family.kind, "{name}");
        for (line, labels, _) in &family.samples {
            let mut labels: Labels = labels.clone();
            if row.kind == "histogram" {
                labels.remove("le");
            }
            let names: Vec<_> = labels.keys().collect();
            assert_eq!(names, row.labels.keys().collect::<Vec<_>>(), "labels of {line}");
            for (label, word) in labels.iter().filter(|(label, word)| *label != "job" && !word.is_empty()) {
                assert!(row.labels[label].contains(word), "{line}: {label}={word:?} is in no row");
            }
        }
    }
    let absent: Vec<_> = rows.keys().filter(|name| !page.families.contains_key(*name)).collect();
    let may_be = |name: &&&String| {
        [
            "runner_job_last_success_timestamp_seconds",
            "runner_job_next_firing_timestamp_seconds",
            "runner_clock_offset_seconds",
        ]
        .contains(&name.as_str())
    };
    assert!(absent.iter().all(|name| may_be(&name)), "not on the page: {absent:?}");
}

#[test]
fn every_metric_that_an_alert_asks_for_is_in_the_table() {
    let rows = rows();
    let (_, alerts) = PAGE.split_once("## Alerts").unwrap();
    let words = alerts.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let named: BTreeSet<&str> = words.filter(|word| word.starts_with("runner_")).collect();
    assert!(named.len() > 8, "{named:?}");
    for name in named {
        assert!(rows.contains_key(name.trim_end_matches("_bucket")), "{name} is in no row");
    }
}
