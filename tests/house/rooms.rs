//! Which room may enter which, and what only the executor may do.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::Source;
use crate::{holds, planted, product};

/// Everyone may use these.
const LEAVES: [&str; 3] = ["firing", "clock", "capture"];
/// What everyone but the leaves may use: counting.
const SERVICES: [&str; 1] = ["telemetry"];

/// Which rooms of `crates/runner/src` a room may enter, besides itself, the leaves and the services. From the
/// top floor down; a door leads down.
const DOORS: &[(&str, &[&str])] = &[
    ("main", &["builder"]),
    ("builder", &["cli", "config", "engine", "job", "registry"]),
    // `warden` holds the entry of the process beside a command.
    ("cli", &["admin", "operate", "engine", "registry", "warden", "ledger", "config", "schedule"]),
    ("admin", &["engine", "config"]),
    ("operate", &["engine", "registry", "config"]),
    ("engine", &["registry", "job", "ledger", "config", "schedule"]),
    // What is known before anything runs.
    ("registry", &["kinds", "job", "config"]),
    ("kinds", &["warden", "job", "ledger", "config"]),
    ("warden", &["job"]),
    ("job", &["ledger"]),
    ("ledger", &[]),
    ("config", &["schedule"]),
    ("schedule", &[]),
    ("telemetry", &[]),
    ("firing", &[]),
    ("clock", &[]),
    ("capture", &[]),
];

fn rooms_door(project: &[Source]) -> Vec<String> {
    const HOUSE: &str = "crates/runner/src/";
    let reexports = reexports(project);
    let rooms: BTreeMap<_, _> = DOORS.iter().copied().collect();
    let mut breaches = Vec::new();
    for source in project.iter().filter(|source| source.is_rust() && source.is_under(HOUSE)) {
        let module = module_of(source.path.trim_start_matches(HOUSE));
        let Some(room) = module.first() else { continue };
        let Some(doors) = rooms.get(room.as_str()) else {
            breaches.push(source.breach(
                1,
                &format!("{room} is a new room: give it a line in DOORS of tests/house/rooms.rs"),
            ));
            continue;
        };
        for named in &source.rust().paths {
            let Some(target) = target_of(&named.segments, &module) else { continue };
            let target = reexports.get(&target).unwrap_or(&target).as_str();
            let open = target == room
                || !rooms.contains_key(target)
                || LEAVES.contains(&target)
                || SERVICES.contains(&target) && !LEAVES.contains(&room.as_str())
                || doors.contains(&target);
            if !open {
                let advice = format!("there is no door from {room} to {target} (it may enter {doors:?})");
                breaches.push(source.breach(named.line, &advice));
            }
        }
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

#[test]
fn rooms_keep_to_their_doors() {
    holds(rooms_door);
    let rule = rooms_door;
    assert_eq!(planted(rule, "crates/runner/src/firing.rs", "use crate::ledger::Claim;"), 1);
    assert_eq!(planted(rule, "crates/runner/src/schedule/cron.rs", "use crate::{clock, config::Config};"), 1);
    assert_eq!(planted(rule, "crates/runner/src/engine/scheduler.rs", "use super::super::cli::Format;"), 1);
    assert_eq!(
        planted(rule, "crates/runner/src/ledger/sqlite/open.rs", "fn f() { super::super::super::cli::g() }"),
        1
    );
    assert_eq!(
        planted(rule, "crates/runner/src/ledger/sqlite/open.rs", "use super::super::values::Claim;"),
        0
    );
    assert_eq!(
        planted(
            rule,
            "crates/runner/src/engine/executor/mod.rs",
            "use crate::{firing, ledger::Claim, job::Job};"
        ),
        0
    );
    assert_eq!(planted(rule, "crates/runner/src/clock.rs", "use crate::telemetry;"), 1);
    assert_eq!(planted(rule, "crates/runner/src/attic.rs", ""), 1);
    let through_a_shorter_name = [
        Source::new("crates/runner/src/lib.rs", "mod job;\npub use job::{Job, JobContext};"),
        Source::new("crates/runner/src/ledger/open.rs", "use crate::JobContext;"),
    ];
    assert_eq!(rule(&through_a_shorter_name).len(), 1);
}

#[test]
fn every_door_leads_to_a_room() {
    let rooms: BTreeSet<_> = DOORS.iter().map(|(room, _)| *room).collect();
    let doors = DOORS.iter().flat_map(|(_, doors)| doors.iter());
    assert_eq!(doors.filter(|door| !rooms.contains(*door)).collect::<Vec<_>>(), Vec::<&&str>::new());
}

fn both_layers_door(project: &[Source]) -> Vec<String> {
    // Clocks, random numbers, arithmetic and a report: they touch no lock.
    const HARMLESS: [&str; 6] =
        ["BootClock", "BootInstant", "SystemBootClock", "Jitter", "Lease", "LeaseReport"];
    const OWNER: &str = "crates/runner/src/engine/executor";
    const BUILDERS: [&str; 2] = ["crates/runner/src/engine/replica.rs", "crates/runner/src/engine/layers.rs"];
    let mut breaches = Vec::new();
    let outside =
        product(project).filter(|source| source.is_under("crates/runner/src/") && !source.is_under(OWNER));
    for source in outside {
        for named in &source.rust().paths {
            let last = named.segments.last().map_or("", String::as_str);
            let lock =
                named.starts_with(&["lockcore"]) && !HARMLESS.iter().any(|word| named.segments[1] == *word);
            let ledger = matches!(last, "Ledger" | "ClaimRequest" | "Settlement")
                && named.segments.iter().any(|segment| segment == "ledger");
            let uses = matches!(last, "AcquireRequest" | "ClaimRequest" | "Settlement");
            let inside_ledger = source.is_under("crates/runner/src/ledger/");
            let allowed = if BUILDERS.iter().any(|builder| source.is_under(builder)) {
                !uses
            } else {
                inside_ledger && !lock
            };
            if (lock || ledger) && !allowed {
                let advice = "only the executor calls the lock and the corridor's side of the ledger, and \
                              the replica only constructs them: go through the executor (or the ledger's \
                              Upkeep or Reader)";
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
