//! What has gone wrong in other schedulers, kind by kind, where no other test would notice it here:
//! `docs/failures.md` lists the kinds and says which test stands against each.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "network/account.rs"]
mod account;
#[expect(dead_code, reason = "some of what it offers is for other tests")]
#[path = "admin/client.rs"]
mod client;
#[path = "cases/clocks.rs"]
mod clocks;
#[path = "faults/cluster.rs"]
mod cluster;
#[path = "cases/grid.rs"]
mod grid;
#[path = "cases/leaks.rs"]
mod leaks;
#[path = "cases/leaving.rs"]
mod leaving;
#[path = "cases/own_code.rs"]
mod own_code;
#[path = "cases/postgres.rs"]
mod postgres;
#[path = "cases/redis.rs"]
mod redis;
#[expect(dead_code, reason = "some of what it offers is for other tests")]
#[path = "network/scene.rs"]
mod scene;

use std::path::Path;

use testbed::{Deployment, Replica};

/// No server at all: SQLite beside the file, locks within the process.
fn embedded() -> Deployment {
    Deployment::new(Path::new(env!("CARGO_BIN_EXE_runner")))
}

/// A job whose command is this argv.
fn command(name: &str, argv: &[&str], keys: &str) -> String {
    let argv = serde_json::to_string(argv).unwrap();
    format!("[jobs.{name}]\nkind = \"command\"\nparams = {{ argv = {argv} }}\n{keys}\n")
}

/// What all of them have said that contains `word`.
fn said(replicas: &[Replica], word: &str) -> Vec<String> {
    let lines = replicas.iter().flat_map(|replica| replica.lines().since(0));
    lines.filter(|line| line.contains(word)).collect()
}
