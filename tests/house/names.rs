//! What types and functions are called.

use std::collections::BTreeMap;

use crate::source::{Source, rust_under};
use crate::{holds, planted};

const CRATES: [&str; 3] = ["crates/lockcore/src/", "crates/runner/src/", "crates/testbed/src/"];

fn namesakes(project: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for sources in CRATES {
        let mut seen: BTreeMap<&str, Vec<(&Source, usize)>> = BTreeMap::new();
        for source in rust_under(project, sources) {
            for found in &source.rust().types {
                seen.entry(&found.name).or_default().push((source, found.line));
            }
        }
        for (name, places) in seen.into_iter().filter(|(_, places)| places.len() > 1) {
            for (source, line) in &places {
                let others = places.iter().filter(|(other, _)| other.path != source.path);
                let others: Vec<&str> = others.map(|(other, _)| other.path.as_str()).collect();
                let advice = format!(
                    "{name} is also the name of a type in {}: say in one of them which it is",
                    others.join(", ")
                );
                breaches.push(source.breach(*line, &advice));
            }
        }
    }
    breaches
}

#[test]
fn no_two_types_of_a_crate_have_one_name() {
    holds(namesakes);
    let file = |path: &str, text: &str| Source::new(path, text);
    let twice = [
        file("crates/runner/src/a.rs", "struct Row;"),
        file("crates/runner/src/b.rs", "mod inner { pub(crate) enum Row {} }"),
        file("crates/runner/src/c.rs", "fn f() { struct Row; }\n#[cfg(test)]\nmod tests { struct Row; }"),
        file("crates/lockcore/src/c.rs", "trait Row {}"),
    ];
    assert_eq!(namesakes(&twice).len(), 2);
}

/// Functions, and not only those with `#[test]`: a claim of a conformance suite is a plain function.
fn long_names(project: &[Source]) -> Vec<String> {
    const LONGEST: usize = 80;
    let mut breaches = Vec::new();
    for source in project.iter().filter(|source| source.is_rust()) {
        for function in source.rust().functions.iter().filter(|function| function.name.len() > LONGEST) {
            let advice = format!(
                "{} has {} letters, {LONGEST} are the most: say the claim in fewer words",
                function.name,
                function.name.len()
            );
            breaches.push(source.breach(function.line, &advice));
        }
    }
    breaches
}

#[test]
fn no_name_of_a_function_has_more_than_80_letters() {
    holds(long_names);
    let of = |letters: usize| "a".repeat(letters);
    let rule = long_names;
    assert_eq!(planted(rule, "tests/a.rs", &format!("#[test]\nfn {}() {{}}", of(80))), 0);
    assert_eq!(planted(rule, "tests/a.rs", &format!("#[test]\nfn {}() {{}}", of(81))), 1);
    let in_a_macro = format!("proptest! {{ #[test] fn {}(n in 0..9) {{ assert!(true); }} }}", of(81));
    assert_eq!(planted(rule, "crates/runner/src/clock.rs", &in_a_macro), 1);
    let in_a_module = format!("#[cfg(test)]\nmod tests {{ #[tokio::test]\nasync fn {}() {{}} }}", of(81));
    assert_eq!(planted(rule, "crates/runner/src/clock.rs", &in_a_module), 1);
}
