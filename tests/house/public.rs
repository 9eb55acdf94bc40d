//! What a user's crate sees. A new public name is a decision: it has to be added here.

use std::collections::BTreeSet;

use crate::planted;
use crate::reading::{Export, Exported};
use crate::source::{Source, project};

const ROOT: &str = "crates/runner/src/lib.rs";

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
        root.iter().any(|export| export.is_hidden && export.inside.is_empty() && export.name == name)
    };
    let mut names = BTreeSet::new();
    for export in root.iter().filter(|export| !export.is_hidden) {
        if export.inside.first().is_some_and(|module| hidden(module)) {
            continue;
        }
        let path = [export.inside.as_slice(), std::slice::from_ref(&export.name)].concat().join("::");
        if export.what == Exported::Module && export.inside.is_empty() {
            for file in [format!("{path}.rs"), format!("{path}/mod.rs")] {
                let inner = exports_of(&format!("crates/runner/src/{file}"));
                let shown = inner.iter().filter(|inner| !inner.is_hidden && inner.inside.is_empty());
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
    assert_eq!(beside("#[doc(hidden)]\npub mod a { pub use crate::b::B; pub mod c {} }"), 0);
}
