//! Which crates and which parts of std may be named where.

use crate::reading;
use crate::source::Source;
use crate::{holds, planted, product};

/// A file, or a folder, that may do what a door forbids; and why.
type Exceptions = &'static [(&'static str, &'static str)];

fn is_excepted(source: &Source, exceptions: Exceptions) -> bool {
    exceptions.iter().any(|(path, _)| source.is_under(path))
}

fn redis_door(project: &[Source]) -> Vec<String> {
    const OWNER: &str = "crates/lockcore/src/redis/";
    // There `redis` is the module of that name.
    const ROOT: &str = "crates/lockcore/src/lib.rs";
    const ADVICE: &str =
        "redis is known to lockcore's redis/ alone: put it behind LockBackend, or say there what you need";
    let others = product(project).filter(|source| !source.is_under(OWNER) && source.path != ROOT);
    named(others, &["redis"], ADVICE)
}

fn sqlx_door(project: &[Source]) -> Vec<String> {
    const OWNERS: Exceptions = &[
        ("crates/runner/src/ledger/", "it speaks to the databases"),
        ("crates/runner/src/kinds/sql", "it runs the user's statements"),
        ("crates/runner/src/lib.rs", "it hands the client on to jobs that open a transaction"),
        ("crates/runner/src/cli/logging.rs", "it hushes the library, whose log lines carry its name"),
    ];
    const ADVICE: &str = "sqlx belongs to ledger/ and kinds/sql, and is named nowhere else, not even in a \
                          comment: ask the ledger in its own words";
    let others = product(project).filter(|source| !is_excepted(source, OWNERS));
    others.flat_map(|source| source.breaches(|line| line.contains("sqlx"), ADVICE)).collect()
}

fn axum_door(project: &[Source]) -> Vec<String> {
    const ADVICE: &str = "what serves HTTP belongs to admin/: hand the admin room a value instead";
    let others: Vec<_> =
        product(project).filter(|source| !source.is_under("crates/runner/src/admin/")).collect();
    let doors = ["axum", "metrics_exporter_prometheus"];
    doors.iter().flat_map(|door| named(others.iter().copied(), &[door], ADVICE)).collect()
}

fn hyper_door(project: &[Source]) -> Vec<String> {
    const OWNERS: Exceptions = &[
        ("crates/runner/src/admin/", "it serves"),
        ("crates/runner/src/kinds/http/", "it sends the user's requests"),
    ];
    const ADVICE: &str = "HTTP is spoken by admin/ and kinds/http: hand them a value instead";
    let others: Vec<_> = product(project).filter(|source| !is_excepted(source, OWNERS)).collect();
    let doors = ["hyper", "hyper_util"];
    doors.iter().flat_map(|door| named(others.iter().copied(), &[door], ADVICE)).collect()
}

fn environment_door(project: &[Source]) -> Vec<String> {
    const OWNERS: Exceptions = &[
        ("crates/runner/src/config/", "it reads jobs.toml, the environment and secrets"),
        ("crates/runner/src/ledger/sqlite/", "it locks the database's file while it migrates"),
        ("crates/runner/src/kinds/command/", "it hands the environment on to a command, less our own"),
        ("crates/runner/src/engine/lifecycle.rs", "it asks the kernel whether SIGHUP is ignored"),
        ("crates/runner/src/warden/", "it is started by its own name and looks at its process group"),
    ];
    const ADVICE: &str = "environment and files are read under config/: take the value as an argument, or \
                          give tests/house/crates.rs an exception and its reason";
    let others: Vec<_> = product(project).filter(|source| !is_excepted(source, OWNERS)).collect();
    let doors: [&[&str]; 5] = [&["std", "env"], &["std", "fs"], &["tokio", "fs"], &["env"], &["fs"]];
    // Arguments are no environment: whoever owns the process may read them.
    let is_read = |named: &reading::Path| !named.starts_with(&["std", "env", "args_os"]);
    doors.iter().flat_map(|door| named_if(others.iter().copied(), door, is_read, ADVICE)).collect()
}

/// Every place that names something below the path `door`.
fn named<'a>(sources: impl Iterator<Item = &'a Source>, door: &[&str], advice: &str) -> Vec<String> {
    named_if(sources, door, |_| true, advice)
}

fn named_if<'a>(
    sources: impl Iterator<Item = &'a Source>,
    door: &[&str],
    counts: impl Fn(&reading::Path) -> bool,
    advice: &str,
) -> Vec<String> {
    let mut breaches = Vec::new();
    for source in sources {
        let found = source.rust().paths.iter().filter(|named| named.starts_with(door) && counts(named));
        breaches.extend(found.map(|named| source.breach(named.line, advice)));
    }
    breaches
}

#[test]
fn redis_is_named_in_one_folder_of_lockcore() {
    holds(redis_door);
    assert_eq!(planted(redis_door, "crates/lockcore/src/guard.rs", "use redis::Client;"), 1);
    assert_eq!(planted(redis_door, "crates/runner/src/cli/doctor.rs", "fn f(c: ::redis::Client) {}"), 1);
    assert_eq!(planted(redis_door, "crates/lockcore/src/redis/link.rs", "use redis::Client;"), 0);
    assert_eq!(
        planted(redis_door, "crates/lockcore/src/guard.rs", "// redis::Client\nuse crate::redis::X;"),
        0
    );
}

#[test]
fn sqlx_is_named_in_the_ledger_alone() {
    holds(sqlx_door);
    assert_eq!(planted(sqlx_door, "crates/runner/src/job.rs", "/// See [`sqlx`].\nfn f() {}"), 1);
    assert_eq!(planted(sqlx_door, "crates/runner/src/engine/executor/mod.rs", "use sqlx::Row;"), 1);
    assert_eq!(planted(sqlx_door, "crates/runner/src/kinds/sql.rs", "use sqlx::Row;"), 0);
}

#[test]
fn axum_is_named_in_the_admin_room_alone() {
    holds(axum_door);
    assert_eq!(planted(axum_door, "crates/runner/src/cli/status.rs", "use axum::{Router, routing};"), 2);
    assert_eq!(planted(axum_door, "crates/runner/src/kinds/http/mod.rs", "use axum::Router;"), 1);
    assert_eq!(planted(axum_door, "crates/runner/src/admin/mod.rs", "use axum::Router;"), 0);
}

#[test]
fn hyper_is_named_where_http_is_served_or_sent() {
    holds(hyper_door);
    assert_eq!(planted(hyper_door, "crates/runner/src/telemetry.rs", "use hyper_util::rt::TokioIo;"), 1);
    assert_eq!(planted(hyper_door, "crates/runner/src/kinds/http/exchange.rs", "use hyper::Uri;"), 0);
    assert_eq!(planted(hyper_door, "crates/runner/src/admin/connections.rs", "use hyper::Uri;"), 0);
}

#[test]
fn environment_and_files_are_read_under_config() {
    holds(environment_door);
    assert_eq!(planted(environment_door, "crates/runner/src/cli/run.rs", "use std::{env, io};"), 1);
    assert_eq!(planted(environment_door, "crates/lockcore/src/key.rs", "fn f() { std::fs::read(1); }"), 1);
    assert_eq!(planted(environment_door, "crates/runner/src/telemetry.rs", "use tokio::fs::File;"), 1);
    assert_eq!(planted(environment_door, "crates/runner/src/config/file.rs", "use std::fs;"), 0);
    assert_eq!(
        planted(environment_door, "crates/runner/src/builder.rs", "fn f() { std::env::args_os(); }"),
        0
    );
    let in_a_test = "#[cfg(test)]\nmod tests { use std::fs; }";
    assert_eq!(planted(environment_door, "crates/runner/src/cli/run.rs", in_a_test), 0);
}

fn lockcore_door(project: &[Source]) -> Vec<String> {
    const FOREIGN: [&str; 6] = ["sqlx", "chrono", "cron", "schedule", "postgres", "sqlite"];
    let mut breaches = Vec::new();
    for source in product(project).filter(|source| source.is_under("crates/lockcore/")) {
        for word in FOREIGN {
            let advice = format!(
                "lockcore is of use without jobs, schedules and SQL: find a word for {word:?} that it knows"
            );
            let lines = source.lines_without_tests();
            let found = lines.filter(|(_, line)| line.to_lowercase().contains(word));
            breaches.extend(found.map(|(number, _)| source.breach(number, &advice)));
        }
    }
    breaches.extend(named(
        product(project).filter(|source| source.is_under("crates/lockcore/")),
        &["runner"],
        "lockcore stands alone: runner builds on it, not the other way round",
    ));
    breaches
}

#[test]
fn lockcore_knows_nothing_of_jobs_schedules_or_sql() {
    holds(lockcore_door);
    assert_eq!(planted(lockcore_door, "crates/lockcore/src/lease.rs", "use chrono::Utc;"), 1);
    assert_eq!(
        planted(lockcore_door, "crates/lockcore/src/lease.rs", "/// Until the Schedule says so.\nfn f() {}"),
        1
    );
    assert_eq!(planted(lockcore_door, "crates/lockcore/src/lease.rs", "use runner::clock;"), 1);
    let in_a_test = "fn f() {}\n#[cfg(test)]\nmod tests {\n    const BAD_URL: &str = \"postgres://\";\n}\n";
    assert_eq!(planted(lockcore_door, "crates/lockcore/src/lease.rs", in_a_test), 0);
    assert_eq!(planted(lockcore_door, "crates/runner/src/clock.rs", "use chrono::Utc;"), 0);
}
