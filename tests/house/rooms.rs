//! Which room may enter which, and what only the executor may do.

use std::collections::BTreeMap;

use crate::reading::Path;
use crate::source::{Source, rust_under};
use crate::{holds, planted, product};

/// The page whose table says which rooms there are, from the top floor down, and where each may enter.
const PAGE: &str = "ARCHITECTURE.md";
const HOUSE: &str = "crates/runner/src/";
/// Everyone may use these.
const LEAVES: [&str; 3] = ["firing", "clock", "capture"];
/// What everyone but the leaves may use: counting.
const SERVICES: [&str; 1] = ["telemetry"];
/// A crate of its own, and a room like any other.
const LOCKCORE: &str = "lockcore";
/// More arrows than this, and nobody keeps the house in mind.
const MOST_ARROWS: usize = 75;

/// One room of the table.
#[derive(Debug)]
struct Room {
    line: usize,
    name: String,
    doors: Vec<String>,
}

/// The table below `| room | holds | may enter |`.
fn rooms(project: &[Source]) -> Vec<Room> {
    let page = project.iter().find(|source| source.path == PAGE);
    let lines = page.map_or("", |page| page.text.as_str()).lines().enumerate();
    let below = lines.skip_while(|(_, line)| !line.starts_with("| room | holds | may enter |")).skip(2);
    let quoted = |cell: &str| -> Vec<String> {
        cell.split('`').skip(1).step_by(2).map(|name| name.trim_end_matches('/').to_owned()).collect()
    };
    let mut rooms = Vec::new();
    for (index, line) in below.take_while(|(_, line)| line.starts_with('|')) {
        let cells: Vec<&str> = line.split(" | ").collect();
        let [names, _, doors] = cells.as_slice() else { panic!("{PAGE}:{}: three cells", index + 1) };
        for name in quoted(names) {
            rooms.push(Room { line: index + 1, name, doors: quoted(doors) });
        }
    }
    rooms
}

/// Where one room names something of another, by both names: the first place for each pair.
fn arrows<'p>(project: &'p [Source], rooms: &[Room]) -> BTreeMap<(String, String), (&'p Source, usize)> {
    let reexports = reexports(project);
    let is_room = |name: &str| name == LOCKCORE || rooms.iter().any(|room| room.name == name);
    let mut arrows = BTreeMap::new();
    for source in rust_under(project, HOUSE) {
        let module = module_of(source.path.trim_start_matches(HOUSE));
        // lib.rs is the list of contents: it names what is public, and does nothing with it.
        let Some(room) = module.first() else { continue };
        for named in &source.rust().paths {
            let Some(target) = target_of(&named.segments, &module) else { continue };
            let target = reexports.get(&target).unwrap_or(&target).clone();
            if target != *room && is_room(&target) {
                arrows.entry((room.clone(), target)).or_insert((source, named.line));
            }
        }
    }
    arrows
}

fn rooms_door(project: &[Source]) -> Vec<String> {
    let rooms = rooms(project);
    let mut breaches = Vec::new();
    for source in rust_under(project, HOUSE) {
        let module = module_of(source.path.trim_start_matches(HOUSE));
        if module.first().is_some_and(|room| !rooms.iter().any(|known| known.name == *room)) {
            breaches
                .push(source.breach(1, &format!("{} is a new room: give it a line in {PAGE}", module[0])));
        }
    }
    let arrows = arrows(project, &rooms);
    for ((from, to), (source, line)) in &arrows {
        let doors = rooms.iter().find(|room| room.name == *from).map_or(&[][..], |room| &room.doors);
        let open = LEAVES.contains(&to.as_str())
            || SERVICES.contains(&to.as_str()) && !LEAVES.contains(&from.as_str())
            || doors.contains(to);
        if !open {
            let advice = format!("there is no door from {from} to {to} ({PAGE} lets it enter {doors:?})");
            breaches.push(source.breach(*line, &advice));
        }
    }
    for (floor, room) in rooms.iter().enumerate() {
        for door in &room.doors {
            let place = format!("{PAGE}:{}", room.line);
            let (from, to) = (&room.name, door);
            if !arrows.contains_key(&(from.clone(), to.clone())) {
                breaches.push(format!("{place}: nobody uses the door from {from} to {to}: close it"));
            }
            // A house without a way up has no circle.
            let below = rooms.iter().position(|other| other.name == *door);
            if door != LOCKCORE && below.is_none_or(|below| below <= floor) {
                breaches.push(format!("{place}: the door from {from} to {to} does not lead down"));
            }
        }
    }
    if arrows.len() > MOST_ARROWS {
        let list: Vec<_> = arrows.keys().map(|(from, to)| format!("{from} -> {to}")).collect();
        let count = list.len();
        breaches.push(format!("{count} arrows, {MOST_ARROWS} are the most:\n{}", list.join("\n")));
    }
    breaches
}

/// `ledger/sqlite/open.rs` → ledger, sqlite, open; `lib.rs` → nothing.
fn module_of(path: &str) -> Vec<String> {
    let parts = path.trim_end_matches(".rs").split('/').map(str::to_owned);
    let mut module: Vec<_> = parts.collect();
    module.pop_if(|last| last == "mod" || last == "lib");
    module
}

/// The room, or the re-exported name, that a path leads to; `None` where it leads out of the crate
/// or stays in the room.
fn target_of(segments: &[String], module: &[String]) -> Option<String> {
    let ups = segments.iter().take_while(|segment| *segment == "super").count();
    match segments.first()?.as_str() {
        "crate" => segments.get(1).cloned(),
        LOCKCORE => Some(LOCKCORE.to_owned()),
        "runner" if module == ["main"] => segments.get(1).cloned(),
        "super" if ups < module.len() => None,
        "super" => segments.get(ups).cloned(),
        _ => None,
    }
}

/// What lib.rs gives a shorter name: `JobContext` → job.
fn reexports(project: &[Source]) -> BTreeMap<String, String> {
    let root = project.iter().find(|source| source.path == "crates/runner/src/lib.rs");
    let named = root.map_or_else(Vec::new, |root| root.rust().paths.clone());
    let with_room = named.into_iter().filter(|named| named.segments.len() > 1);
    with_room.map(|named| (named.segments.last().unwrap().clone(), named.segments[0].clone())).collect()
}

/// A house of three floors, and one more file.
fn house(table: &str, path: &str, text: &str) -> Vec<String> {
    let page = format!("| room | holds | may enter |\n|---|---|---|\n{table}\n\nMore.\n");
    rooms_door(&[Source::new(PAGE, &page), Source::new(path, text)])
}

#[test]
fn rooms_keep_to_their_doors() {
    holds(rooms_door);
    const TABLE: &str = "| `cli/` | faces | `engine`, `ledger` |\n| `engine/` | works | `ledger` |\n\
                         | `ledger/`, `config/` | rows | – |\n| `firing/`, `telemetry/` | words | – |";
    let breaches = |path: &str, text: &str| {
        let told = house(TABLE, path, text);
        told.into_iter().filter(|told| !told.contains("nobody uses")).collect::<Vec<_>>()
    };
    for (path, text, count) in [
        ("crates/runner/src/firing/mod.rs", "use crate::ledger::Claim;", 1),
        ("crates/runner/src/firing/mod.rs", "use crate::telemetry;", 1),
        ("crates/runner/src/engine/a.rs", "use crate::{firing, config::Config};", 1),
        ("crates/runner/src/engine/a.rs", "use super::super::cli::Format;", 1),
        ("crates/runner/src/engine/a.rs", "use crate::{firing::Fence, ledger::Claim, telemetry};", 0),
        ("crates/runner/src/engine/a.rs", "use lockcore::Lease;", 1),
        ("crates/runner/src/ledger/b/open.rs", "fn f() { super::super::super::cli::g() }", 1),
        ("crates/runner/src/ledger/b/open.rs", "use super::super::values::Claim;", 0),
        ("crates/runner/src/attic.rs", "", 1),
    ] {
        let told = breaches(path, text);
        assert_eq!(told.len(), count, "{path}: {text}: {told:?}");
    }
    let through_a_shorter_name = [
        Source::new(
            PAGE,
            "| room | holds | may enter |\n|---|---|---|\n| `job/` | a | – |\n| `rows/` | b | – |",
        ),
        Source::new("crates/runner/src/lib.rs", "mod job;\npub use job::{Job, JobContext};"),
        Source::new("crates/runner/src/rows/open.rs", "use crate::JobContext;"),
    ];
    assert_eq!(rooms_door(&through_a_shorter_name).len(), 1);
}

#[test]
fn a_door_that_nobody_uses_or_that_leads_up_is_told() {
    let told = |table: &str| house(table, "crates/runner/src/cli/a.rs", "use crate::engine::Site;");
    assert_eq!(told("| `cli/` | a | `engine` |\n| `engine/` | b | – |"), Vec::<String>::new());
    let unused = told("| `cli/` | a | `engine`, `ledger` |\n| `engine/` | b | – |\n| `ledger/` | c | – |");
    assert!(unused.len() == 1 && unused[0].contains("nobody uses"), "{unused:?}");
    let up = told("| `engine/` | b | – |\n| `cli/` | a | `engine` |");
    assert!(up.len() == 1 && up[0].contains("does not lead down"), "{up:?}");
}

/// Clocks, random numbers, arithmetic, a report and the check of a URL: they touch no lock.
const HARMLESS: [&str; 7] =
    ["BootClock", "BootInstant", "SystemBootClock", "Jitter", "Lease", "LeaseReport", "check_url"];
/// They construct both layers and use neither.
const BUILDERS: [&str; 2] = ["crates/runner/src/engine/replica.rs", "crates/runner/src/engine/layers.rs"];

fn outside_the_executor(project: &[Source]) -> impl Iterator<Item = &Source> {
    const OWNER: &str = "crates/runner/src/engine/executor";
    product(project).filter(|source| source.is_under(HOUSE) && !source.is_under(OWNER))
}

/// Something of lockcore that touches a lock.
fn is_lock(named: &Path) -> bool {
    named.starts_with(&[LOCKCORE]) && !HARMLESS.iter().any(|word| named.segments[1] == *word)
}

/// A lock, or the corridor's side of the ledger.
fn is_layer(named: &Path) -> bool {
    let last = named.segments.last().map_or("", String::as_str);
    let is_ledger = matches!(last, "Ledger" | "ClaimRequest" | "Settlement")
        && named.segments.iter().any(|segment| segment == "ledger");
    is_lock(named) || is_ledger
}

fn both_layers_door(project: &[Source]) -> Vec<String> {
    let mut breaches = Vec::new();
    for source in outside_the_executor(project) {
        let inside_ledger = source.is_under("crates/runner/src/ledger/");
        for named in &source.rust().paths {
            let last = named.segments.last().map_or("", String::as_str);
            let uses = matches!(last, "AcquireRequest" | "ClaimRequest" | "Settlement");
            let allowed = if BUILDERS.iter().any(|builder| source.is_under(builder)) {
                !uses
            } else {
                inside_ledger && !is_lock(named)
            };
            if is_layer(named) && !allowed {
                let advice = "only the executor calls the lock and the corridor's side of the ledger, and \
                              the replica only constructs them: go through the executor (or one of \
                              the ledger's other traits)";
                breaches.push(source.breach(named.line, advice));
            }
        }
    }
    breaches
}

#[test]
fn only_the_executor_calls_both_layers() {
    holds(both_layers_door);
    let rule = both_layers_door;
    let claim = "use crate::ledger::{Claim, ClaimRequest};";
    assert_eq!(planted(rule, "crates/runner/src/job.rs", claim), 1);
    assert_eq!(planted(rule, "crates/runner/src/engine/scheduler.rs", "use lockcore::LockBackend;"), 1);
    assert_eq!(planted(rule, "crates/runner/src/ledger/postgres/mod.rs", "use lockcore::LockBackend;"), 1);
    assert_eq!(
        planted(rule, "crates/runner/src/engine/replica.rs", "use lockcore::{LockBackend, RedisBackend};"),
        0
    );
    assert_eq!(planted(rule, "crates/runner/src/engine/replica.rs", claim), 1);
    assert_eq!(planted(rule, "crates/runner/src/clock.rs", "use lockcore::{BootClock, BootInstant};"), 0);
    assert_eq!(planted(rule, "crates/runner/src/engine/executor/claim.rs", claim), 0);
}

/// The names of this file that have an exception and do not need it.
fn unneeded_exceptions(project: &[Source]) -> Vec<String> {
    let arrows = arrows(project, &rooms(project));
    let is_shut = |room: &&str| !arrows.keys().any(|(_, to)| to == room);
    let shut = LEAVES.into_iter().chain(SERVICES).filter(is_shut);
    let outside: Vec<_> = outside_the_executor(project).collect();
    let is_named = |word: &str| {
        let mut paths = outside.iter().flat_map(|source| &source.rust().paths);
        paths.any(|named| named.starts_with(&[LOCKCORE, word]))
    };
    let unnamed = HARMLESS.into_iter().filter(|word| !is_named(word));
    let constructs = |path: &str| {
        let mut paths = outside.iter().filter(|source| source.is_under(path)).flat_map(|s| &s.rust().paths);
        paths.any(is_layer)
    };
    let idle = BUILDERS.into_iter().filter(|path| !constructs(path));
    let unneeded = shut.chain(unnamed).chain(idle);
    unneeded
        .map(|name| format!("tests/house/rooms.rs: nothing needs the exception {name}: remove it"))
        .collect()
}

#[test]
fn an_exception_that_nothing_needs_is_told() {
    holds(unneeded_exceptions);
    let told = |path: &str, text: &str| {
        let page =
            "| room | holds | may enter |\n|---|---|---|\n| `clock` | a | – |\n| `engine/` | b | – |\n";
        unneeded_exceptions(&[Source::new(PAGE, page), Source::new(path, text)])
    };
    let all = LEAVES.len() + SERVICES.len() + HARMLESS.len() + BUILDERS.len();
    assert_eq!(told("crates/runner/src/engine/sweep.rs", "").len(), all);
    let text = "use crate::clock::Clock;\nuse lockcore::Jitter;";
    assert_eq!(told("crates/runner/src/engine/sweep.rs", text).len(), all - 2);
    assert_eq!(told("crates/runner/src/engine/layers.rs", "use lockcore::LockBackend;").len(), all - 1);
}
