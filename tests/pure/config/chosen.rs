//! The page on choosing shows the arithmetic that the product does.

use std::path::Path;
use std::time::Duration;

use super::desk::{Desk, job_with};

fn page() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/choosing.md");
    std::fs::read_to_string(page).expect("the page")
}

/// `1.333 s`, `166 ms`, in whole milliseconds.
fn millis(cell: &str) -> u128 {
    let (number, unit) = cell.split_once(' ').unwrap_or_else(|| panic!("no duration: {cell}"));
    let number: f64 = number.parse().unwrap_or_else(|error| panic!("{cell}: {error}"));
    let factor = match unit {
        "s" => 1000.0,
        "ms" => 1.0,
        other => panic!("no unit: {other}"),
    };
    Duration::from_secs_f64(number * factor / 1000.0).as_millis()
}

#[test]
fn the_examples_of_the_page_on_choosing_are_what_the_product_makes_of_them() {
    let page = page();
    let rows: Vec<Vec<&str>> = page
        .lines()
        .filter(|line| line.starts_with('|') && line.contains("`ttl = \""))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert!(rows.len() >= 4, "{rows:?}");
    for row in rows {
        let [_, _, written, grace, renewals, life] = row[..] else { panic!("not six cells: {row:?}") };
        let keys = written.trim_matches('`').replace("`, `", "\n");
        let budget = Desk::with(&job_with(&keys)).config().jobs[0].budget;
        let shown = (millis(grace), renewals.parse().expect("a number"), millis(life));
        let made = (budget.kill_grace.as_millis(), budget.max_renewals, budget.lock_life().as_millis());
        assert_eq!(shown, made, "grace, renewals and life of {written}");
    }
}
