//! Which crates and which parts of std may be named where.

use crate::reading;
use crate::source::Source;
use crate::{holds, planted, product};

/// A file, or a folder, that may do what a door forbids; and why.
type Exceptions = &'static [(&'static str, &'static str)];

/// What only a few places may name.
struct Door {
    owners: Exceptions,
    advice: &'static str,
    /// The lines of a file that name it.
    lines: fn(&Source) -> Vec<usize>,
}

impl Door {
    fn breaches(&self, project: &[Source]) -> Vec<String> {
        let is_owner = |source: &Source| self.owners.iter().any(|(path, _)| source.is_under(path));
        let others = product(project).filter(|source| !is_owner(source));
        let breaches = others
            .flat_map(|source| (self.lines)(source).into_iter().map(|line| source.breach(line, self.advice)));
        breaches.collect()
    }

    /// The owners that do not name it any more.
    fn unneeded(&self, project: &[Source]) -> Vec<String> {
        let is_needed = |path: &str| {
            product(project).any(|source| source.is_under(path) && !(self.lines)(source).is_empty())
        };
        let unneeded = self.owners.iter().filter(|(path, _)| !is_needed(path));
        unneeded
            .map(|(path, why)| {
                format!("tests/house/crates.rs: nothing needs the exception {path} ({why}): remove it")
            })
            .collect()
    }
}

const REDIS: Door = Door {
    owners: &[("crates/lockcore/src/redis/", "it speaks to the server")],
    advice: "redis is known to lockcore's redis/ alone: put it behind LockBackend, or say there what you need",
    lines: |source| named(source, &[&["redis"]]),
};

const SQLX: Door = Door {
    owners: &[
        ("crates/runner/src/ledger/", "it speaks to the databases"),
        ("crates/runner/src/kinds/sql", "it runs the user's statements"),
        ("crates/runner/src/lib.rs", "it hands the client on to jobs that open a transaction"),
        ("crates/runner/src/cli/logging.rs", "it hushes the library, whose log lines carry its name"),
    ],
    advice: "sqlx belongs to ledger/ and kinds/sql, and is named nowhere else, not even in a comment: ask the \
             ledger in its own words",
    lines: |source| {
        let lines = source.text.lines().enumerate().filter(|(_, line)| line.contains("sqlx"));
        lines.map(|(index, _)| index + 1).collect()
    },
};

const AXUM: Door = Door {
    owners: &[("crates/runner/src/admin/", "it serves")],
    advice: "what serves HTTP belongs to admin/: hand the admin room a value instead",
    lines: |source| named(source, &[&["axum"], &["metrics_exporter_prometheus"]]),
};

const HYPER: Door = Door {
    owners: &[
        ("crates/runner/src/admin/", "it serves"),
        ("crates/runner/src/kinds/http/", "it sends the user's requests"),
    ],
    advice: "HTTP is spoken by admin/ and kinds/http: hand them a value instead",
    lines: |source| named(source, &[&["hyper"], &["hyper_util"]]),
};

const ENVIRONMENT: Door = Door {
    owners: &[
        ("crates/runner/src/config/", "it reads jobs.toml, the environment and secrets"),
        ("crates/runner/src/ledger/sqlite/", "it locks the database's file while it migrates"),
        ("crates/runner/src/kinds/command/", "it hands the environment on to a command, less our own"),
        ("crates/runner/src/engine/lifecycle.rs", "it asks the kernel whether SIGHUP is ignored"),
        ("crates/runner/src/warden/", "it is started by its own name and looks at its process group"),
    ],
    advice: "environment and files are read under config/: take the value as an argument, or give \
             tests/house/crates.rs an exception and its reason",
    lines: |source| {
        // Arguments are no environment: whoever owns the process may read them.
        let arguments = named(source, &[&["std", "env", "args_os"]]);
        let mut lines =
            named(source, &[&["std", "env"], &["std", "fs"], &["tokio", "fs"], &["env"], &["fs"]]);
        lines.retain(|line| !arguments.contains(line));
        lines
    },
};

fn redis_door(project: &[Source]) -> Vec<String> {
    REDIS.breaches(project)
}

fn sqlx_door(project: &[Source]) -> Vec<String> {
    SQLX.breaches(project)
}

fn axum_door(project: &[Source]) -> Vec<String> {
    AXUM.breaches(project)
}

fn hyper_door(project: &[Source]) -> Vec<String> {
    HYPER.breaches(project)
}

fn environment_door(project: &[Source]) -> Vec<String> {
    ENVIRONMENT.breaches(project)
}

fn unneeded_exceptions(project: &[Source]) -> Vec<String> {
    [REDIS, SQLX, AXUM, HYPER, ENVIRONMENT].iter().flat_map(|door| door.unneeded(project)).collect()
}

/// The lines that name something below one of the paths `doors`.
fn named(source: &Source, doors: &[&[&str]]) -> Vec<usize> {
    let is_named = |path: &&reading::Path| doors.iter().any(|door| path.starts_with(door));
    source.rust().paths.iter().filter(is_named).map(|path| path.line).collect()
}

#[test]
fn an_exception_that_nothing_needs_is_told() {
    holds(unneeded_exceptions);
    let told = |door: Door, path: &str, text: &str| door.unneeded(&[Source::new(path, text)]);
    let unneeded = told(SQLX, "crates/runner/src/ledger/open.rs", "use sqlx::Row;");
    assert_eq!(unneeded.len(), SQLX.owners.len() - 1, "{unneeded:?}");
    assert!(unneeded.iter().all(|told| told.ends_with(": remove it")), "{unneeded:?}");
    let in_a_test = "#[cfg(test)]\nmod tests { use axum::Router; }";
    assert_eq!(told(AXUM, "crates/runner/src/admin/routes.rs", in_a_test).len(), 1);
    assert_eq!(told(AXUM, "crates/runner/src/admin/routes.rs", "use axum::Router;").len(), 0);
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
    let advice = "lockcore stands alone: runner builds on it, not the other way round";
    for source in product(project).filter(|source| source.is_under("crates/lockcore/")) {
        breaches.extend(named(source, &[&["runner"]]).into_iter().map(|line| source.breach(line, advice)));
    }
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
