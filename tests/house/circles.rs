//! Files and folders that use one another in a circle.

use std::collections::{BTreeMap, BTreeSet};

use crate::holds;
use crate::reading::Path;
use crate::source::{Source, rust_under};

/// The crates that users run.
const CRATES: [&str; 2] = ["crates/lockcore/src/", "crates/runner/src/"];

/// A module by its names from the root of the crate: `ledger/sqlite/open.rs` is ledger, sqlite, open.
type Module = Vec<String>;

/// What lies in one folder, by its names, and whom each uses: the first place for each pair.
/// `open.rs` and the files in `open/` have one name.
type Folder = BTreeMap<String, BTreeMap<String, String>>;

struct Crate<'p> {
    files: BTreeMap<Module, &'p Source>,
}

impl<'p> Crate<'p> {
    fn read(project: &'p [Source], root: &str) -> Self {
        let module = |source: &Source| {
            let path = source.path.trim_start_matches(root).trim_end_matches(".rs");
            let mut module: Module = path.split('/').map(str::to_owned).collect();
            module.pop_if(|last| last == "mod" || last == "lib");
            module
        };
        let files = rust_under(project, root).into_iter().map(|source| (module(source), source));
        Self { files: files.collect() }
    }

    /// The folders of the crate. A file and those below it are left out: a `mod.rs` may hold the type that
    /// the files beside it implement.
    fn folders(&self) -> BTreeMap<Module, Folder> {
        let mut folders: BTreeMap<Module, Folder> = BTreeMap::new();
        for (from, source) in &self.files {
            for named in &source.rust().paths {
                let target = self.absolute(named, from).and_then(|path| self.module(path, 0));
                let Some(to) = target else { continue };
                let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
                let (Some(user), Some(used)) = (from.get(common), to.get(common)) else { continue };
                let folder = folders.entry(from[..common].to_vec()).or_default();
                let place = source.breach(named.line, &format!("uses {}", named.segments.join("::")));
                folder.entry(user.clone()).or_default().entry(used.clone()).or_insert(place);
            }
        }
        folders
    }

    /// A path from the root of the crate; `None` where it leads to another crate, or where a `use` has
    /// already named its first segment.
    fn absolute(&self, named: &Path, module: &Module) -> Option<Module> {
        let segments = &named.segments;
        let ups = segments.iter().take_while(|segment| *segment == "super").count();
        match segments.first()?.as_str() {
            "crate" => Some(segments[1..].to_vec()),
            "self" => Some([module, &segments[1..]].concat()),
            "super" => Some([&module[..module.len().checked_sub(ups)?], &segments[ups..]].concat()),
            child => {
                let below = [module.as_slice(), &[child.to_owned()]].concat();
                self.files.contains_key(&below).then(|| [module.as_slice(), segments].concat())
            }
        }
    }

    /// The module that holds what a path names. A name that a module only hands on is looked up where
    /// it comes from.
    fn module(&self, path: Module, depth: usize) -> Option<Module> {
        // Names that go round in a circle do not compile; the bound only keeps a mistake here from hanging.
        const DEEPEST: usize = 16;
        let length = (0..=path.len()).rev().find(|length| self.files.contains_key(&path[..*length]))?;
        let (module, rest) = (path[..length].to_vec(), &path[length..]);
        let mut uses = self.files[&module].rust().paths.iter();
        // Also by a private `use`: the files below see it.
        let handed_on = rest.first().and_then(|name| uses.find(|named| named.used_as.as_ref() == Some(name)));
        // What comes from another crate, or is a macro, belongs to the module that hands it on.
        let origin = handed_on.filter(|_| depth < DEEPEST).and_then(|named| self.absolute(named, &module));
        match origin {
            Some(origin) => self.module([origin.as_slice(), &rest[1..]].concat(), depth + 1),
            None => Some(module),
        }
    }
}

/// Every name that can be reached from `from`.
fn reached<'f>(folder: &'f Folder, from: &str) -> BTreeSet<&'f str> {
    let mut seen = BTreeSet::new();
    let mut ahead = vec![from];
    while let Some(name) = ahead.pop() {
        for next in folder.get(name).into_iter().flat_map(BTreeMap::keys) {
            if seen.insert(next.as_str()) {
                ahead.push(next);
            }
        }
    }
    seen
}

/// The circles of a folder: in each, every name reaches every other.
fn circles(folder: &Folder) -> BTreeSet<Vec<&str>> {
    let mut circles = BTreeSet::new();
    for name in folder.keys() {
        let ahead = reached(folder, name);
        if ahead.contains(name.as_str()) {
            circles.insert(
                ahead.into_iter().filter(|other| reached(folder, other).contains(name.as_str())).collect(),
            );
        }
    }
    circles
}

fn in_circles(project: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for root in CRATES {
        for (module, folder) in Crate::read(project, root).folders() {
            for circle in circles(&folder) {
                let uses = circle.iter().flat_map(|name| &folder[*name]);
                let places: Vec<&str> = uses
                    .filter(|(used, _)| circle.contains(&used.as_str()))
                    .map(|(_, place)| place.as_str())
                    .collect();
                breaches.push(format!(
                    "{root}{}: {} use one another: move what they share into a file of its own\n    {}",
                    module.join("/"),
                    circle.join(", "),
                    places.join("\n    ")
                ));
            }
        }
    }
    breaches
}

#[test]
fn no_files_of_a_folder_use_one_another_in_a_circle() {
    holds(in_circles);
}

#[test]
fn a_planted_circle_is_told_with_every_place() {
    let told = |files: &[(&str, &str)]| {
        let source = |(path, text): &(&str, &str)| Source::new(&format!("crates/runner/src/{path}"), text);
        in_circles(&files.iter().map(source).collect::<Vec<_>>())
    };
    let two = told(&[
        ("rows/a.rs", "use super::b::B;\npub struct A;"),
        ("rows/b.rs", "pub struct B;\nfn f() -> super::a::A { super::a::A }"),
        ("rows/user.rs", "use super::{a::A, b::B};"),
    ]);
    assert_eq!(two.len(), 1, "{two:?}");
    for part in ["a, b use", "rows/a.rs:1: uses super::b::B", "rows/b.rs:2: uses super::a::A"] {
        assert!(two[0].contains(part), "{part}: {two:?}");
    }
    let three = [
        ("rows/a.rs", "use crate::rows::b::B;"),
        ("rows/b.rs", "fn f() { macro_rules! m { () => { $crate::rows::c::C } } }"),
        ("rows/c.rs", "use super::a;"),
    ];
    assert_eq!((told(&three).len(), told(&three[..2]).len()), (1, 0));
    let through_a_shorter_name = [
        ("rows/mod.rs", "mod a;\nmod b;\npub use b::B;\nuse a::A;"),
        ("rows/a.rs", "use super::B;"),
        ("rows/b.rs", "use super::A;"),
    ];
    assert_eq!(told(&through_a_shorter_name).len(), 1);
    let through_a_folder = [
        ("ledger/mod.rs", "mod open;\nmod sqlite;\npub use sqlite::Sqlite;\npub use open::Options;"),
        ("ledger/open.rs", "use super::Sqlite;"),
        ("ledger/sqlite/mod.rs", "mod lane;\npub use lane::Sqlite;"),
        ("ledger/sqlite/lane.rs", "use crate::ledger::Options;"),
    ];
    assert_eq!(told(&through_a_folder).len(), 1);
}

#[test]
fn a_file_and_the_files_below_it_may_use_one_another() {
    let none = |files: &[(&str, &str)]| {
        let source = |(path, text): &(&str, &str)| Source::new(&format!("crates/runner/src/{path}"), text);
        assert_eq!(in_circles(&files.iter().map(source).collect::<Vec<_>>()), Vec::<String>::new());
    };
    none(&[
        ("corridor/mod.rs", "mod claim;\npub struct Corridor;\nfn f() { claim::g() }"),
        ("corridor/claim.rs", "use super::Corridor;\nuse crate::corridor;"),
    ]);
    none(&[("rows.rs", "mod old;\nuse self::old::Old;"), ("rows/old.rs", "use super::Row;")]);
    none(&[
        ("rows/a.rs", "use super::b::B;"),
        ("rows/b.rs", "#[cfg(test)]\nmod tests { use crate::rows::a::A; }"),
    ]);
    // A file is not its namesake in another folder, and `b` in `b::c` may be anybody's.
    none(&[("rows/a.rs", "use super::b::B;"), ("rows/b.rs", "use crate::a::A;\nuse a::A;"), ("a.rs", "")]);
}
