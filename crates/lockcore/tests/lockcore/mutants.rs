//! Each condition of the scripts, taken out: a test must fail. The conditions stand beside the scripts, in
//! `NAME.conditions.toml`.

use std::path::{Path, PathBuf};

use testbed::{Conditions, Mutant, assert_every_mutant_is_caught, assert_lists, condition_rows};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn conditions() -> Vec<Conditions> {
    let conditions = Conditions::in_folder(&root(), "crates/lockcore/src/lua", "lua");
    assert_eq!(conditions.iter().map(Conditions::name).collect::<Vec<_>>(), ["acquire", "release", "renew"]);
    conditions
}

#[test]
fn a_test_notices_when_a_condition_of_the_scripts_is_missing() {
    // The rules are one text, and run against each backend.
    let against_redis = |test: &str| test.replace("conformance::rules::", "conformance::redis::");
    let mutants: Vec<Mutant> = conditions().iter().flat_map(|of| of.mutants(against_redis)).collect();
    assert_every_mutant_is_caught(&root(), &mutants, None);
}

#[test]
fn the_page_lists_every_condition_of_the_scripts() {
    let rows = condition_rows(&[&conditions()], "crates/lockcore/tests/lockcore");
    assert_lists(&root().join("docs/mutants.md"), "| condition of a script |", &rows);
}
