//! The names that other crates can use. A new one is a decision: add it to the list on purpose.

use std::path::Path;

use syn::{Item, UseTree, Visibility};

const PUBLIC: &[&str] = &[
    // Taking a lock, holding it, releasing it.
    "AcquireRequest",
    "Acquisition",
    "Holder",
    "InvalidKey",
    "LeaseGuard",
    "LeaseReport",
    "LockError",
    "LockKey",
    "Locks",
    "Loss",
    "Release",
    "Terms",
    "Token",
    // Opening a backend.
    "InvalidUrl",
    "OpenOptions",
    "check_url",
    "in_process",
    "open",
    // Writing a backend.
    "AcquireOutcome",
    "BoxFuture",
    "DoneMark",
    "LockBackend",
    "ReleaseOutcome",
    "RenewOutcome",
    // Time and waiting.
    "Backoff",
    "BootClock",
    "BootInstant",
    "Jitter",
    "Lease",
    "SystemBootClock",
];

/// The public names of a crate root; what else is public there is an error.
fn public_names(root: &str) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for item in syn::parse_file(root).map_err(|error| error.to_string())?.items {
        match item {
            Item::Use(item) if matches!(item.vis, Visibility::Public(_)) => collect(&item.tree, &mut names)?,
            Item::Use(_) => {}
            Item::Mod(item) if matches!(item.vis, Visibility::Inherited) && item.content.is_none() => {}
            _ => return Err("lib.rs contains something other than private modules and `pub use`".into()),
        }
    }
    Ok(names)
}

fn collect(tree: &UseTree, names: &mut Vec<String>) -> Result<(), String> {
    match tree {
        UseTree::Path(path) => collect(&path.tree, names)?,
        UseTree::Name(name) => names.push(name.ident.to_string()),
        UseTree::Rename(rename) => names.push(rename.rename.to_string()),
        UseTree::Group(group) => group.items.iter().try_for_each(|tree| collect(tree, names))?,
        UseTree::Glob(_) => return Err("lib.rs re-exports with `*`, which hides what is public".into()),
    }
    Ok(())
}

#[test]
fn the_public_names_are_those_on_the_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let mut found = public_names(&std::fs::read_to_string(root).unwrap()).unwrap();
    let mut listed: Vec<_> = PUBLIC.to_vec();
    found.sort();
    listed.sort_unstable();
    assert_eq!(found, listed, "on the left what lib.rs exports, on the right what PUBLIC lists");
}

#[test]
fn no_public_name_can_get_past_the_list() {
    assert_eq!(public_names("mod a; pub use a::{B, c::D as E}; use f::G;"), Ok(vec!["B".into(), "E".into()]));
    for hidden in ["pub mod a;", "pub fn a() {}", "pub use a::*;", "mod a { pub struct B; }", "pub struct A;"]
    {
        public_names(hidden).unwrap_err();
    }
}
