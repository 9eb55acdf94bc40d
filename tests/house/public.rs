//! What a user's crate sees. A new public name is a decision: it has to be added here.

use std::collections::BTreeSet;

use crate::reading::{Export, Exported};
use crate::source::{Source, project};
use crate::{holds, planted, product};

const ROOT: &str = "crates/runner/src/lib.rs";
/// The one module that may be hidden: only our own tests use it.
const HIDDEN: &str = "internal";

/// The names of the crate `runner`, less the module that only our own tests use.
const NAMES: [&str; 16] = [
    "BootInstant",
    "Builder",
    "Cause",
    "EffectError",
    "Fence",
    "Job",
    "JobContext",
    "JobError",
    "Licence",
    "Origin",
    "Runner",
    "Transaction",
    "sqlx",
    "testing",
    "testing::TestContext",
    "testing::stop",
];

/// Every public name, each module's after its own.
fn public_names(project: &[Source]) -> BTreeSet<String> {
    let exports_of = |path: &str| {
        let source = project.iter().find(|source| source.path == path);
        source.map_or(&[][..], |source| &source.rust().exports)
    };
    let root: Vec<&Export> = exports_of(ROOT).iter().collect();
    let hidden = |name: &str| {
        root.iter().any(|export| export.hidden.is_some() && export.inside.is_empty() && export.name == name)
    };
    let mut names = BTreeSet::new();
    for export in root.iter().filter(|export| export.hidden.is_none()) {
        if export.inside.first().is_some_and(|module| hidden(module)) {
            continue;
        }
        let path = [export.inside.as_slice(), std::slice::from_ref(&export.name)].concat().join("::");
        if export.what == Exported::Module && export.inside.is_empty() {
            for file in [format!("{path}.rs"), format!("{path}/mod.rs")] {
                let inner = exports_of(&format!("crates/runner/src/{file}"));
                let shown = inner.iter().filter(|inner| inner.hidden.is_none() && inner.inside.is_empty());
                names.extend(shown.map(|inner| format!("{path}::{}", inner.name)));
            }
        }
        names.insert(path);
    }
    names
}

fn undecided(project: &[Source]) -> Vec<String> {
    let names = public_names(project);
    let decided: BTreeSet<String> = NAMES.iter().map(|name| (*name).to_owned()).collect();
    let new = names.difference(&decided).map(|name| format!("{name} is public and not in the list"));
    let gone = decided.difference(&names).map(|name| format!("{name} is in the list and not public"));
    new.chain(gone).map(|what| format!("{ROOT}: {what} of tests/house/public.rs")).collect()
}

#[test]
fn every_public_name_is_a_decision() {
    let told = undecided(project());
    assert!(told.is_empty(), "\n{}\n", told.join("\n"));
    // All names of the list are missing in a file that has none of them.
    let beside = |text: &str| planted(undecided, ROOT, text) - NAMES.len();
    assert_eq!(beside("pub use firing::Firing;"), 1);
    assert_eq!(beside("pub mod a { pub struct B; }"), 2);
    assert_eq!(beside("#[doc(hidden)]\npub mod internal { pub use crate::b::B; pub mod c {} }"), 0);
}

/// A hidden name is public all the same: a user's crate can use it, and the list above does not show it.
fn hidden_names(project: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for source in product(project) {
        let reading = source.rust();
        let is_ours = |export: &&Export| {
            source.path == ROOT
                && export.what == Exported::Module
                && export.name == HIDDEN
                && export.inside.is_empty()
        };
        let ours: Vec<usize> =
            reading.exports.iter().filter(is_ours).filter_map(|export| export.hidden).collect();
        let advice =
            format!("only the module {HIDDEN} of {ROOT} is hidden: show this, or make it pub(crate)");
        let others = reading.hidden.iter().filter(|line| !ours.contains(line));
        breaches.extend(others.map(|line| source.breach(*line, &advice)));
    }
    breaches
}

#[test]
fn no_public_name_is_hidden_but_the_module_of_our_own_tests() {
    holds(hidden_names);
    let internal = "#[doc(hidden)]\npub mod internal { pub use crate::b::B; }\n";
    let in_root = |text: &str| planted(hidden_names, ROOT, &format!("{internal}{text}"));
    assert_eq!(in_root("mod b;"), 0);
    assert_eq!(in_root("#[doc(hidden)]\npub mod more { pub use crate::b::B; }"), 1);
    assert_eq!(in_root("#[doc(hidden)]\npub use b::B;"), 1);
    assert_eq!(in_root("pub mod a { #[doc(hidden)]\npub mod internal {} }"), 1);
    let elsewhere = |text: &str| planted(hidden_names, "crates/runner/src/job/mod.rs", text);
    assert_eq!(elsewhere(internal), 1);
    assert_eq!(elsewhere("#![doc(hidden)]"), 1);
    assert_eq!(elsewhere("#[doc(hidden, alias = \"a\")]\npub fn f() {}"), 1);
    assert_eq!(elsewhere("impl A { #[doc(hidden)]\npub fn f() {} }"), 1);
    assert_eq!(elsewhere("pub struct A { #[doc(hidden)]\npub b: u8 }"), 1);
    assert_eq!(elsewhere("/// hidden\n#[doc = \"hidden\"]\npub fn f() {}"), 0);
    assert_eq!(planted(hidden_names, "crates/lockcore/src/lib.rs", internal), 1);
}
