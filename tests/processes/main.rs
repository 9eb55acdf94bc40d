//! Real `runner` processes on real servers.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod admin;
mod boundaries;
mod cases;
mod cluster;
mod command;
mod corridor;
mod custom_job;
mod effects;
#[cfg(feature = "tls")]
mod encrypted;
mod failover;
mod faults;
mod gaps;
mod http;
mod network;
mod outputs;
mod poison;
mod pooler;
mod receivers;
mod refusals;
mod replicas;
mod soak;

use std::path::Path;

use testbed::Deployment;

/// The program under test.
fn program() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_runner"))
}

/// A deployment without any server: the ledger is a SQLite file, and locks hold within one process.
fn embedded() -> Deployment {
    Deployment::new(program())
}
