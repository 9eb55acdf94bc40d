//! What a replica shows over HTTP: health, readiness and numbers of real processes.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and is a program of its own that reads its own environment"
)]

#[path = "admin/client.rs"]
mod client;
#[expect(dead_code, reason = "the fault tests use all of it")]
#[path = "faults/cluster.rs"]
mod cluster;
#[path = "admin/documented.rs"]
mod documented;
#[path = "admin/exposition.rs"]
mod exposition;
#[path = "admin/listening.rs"]
mod listening;
#[path = "admin/numbers.rs"]
mod numbers;
#[path = "admin/readiness.rs"]
mod readiness;

use std::net::SocketAddr;
use std::time::Duration;

use testbed::{Deployment, Replica};

/// Longer than a start takes on a busy machine.
const START: Duration = Duration::from_secs(30);

/// Each replica serves on a port that the system chooses.
const ADMIN: &str = "[admin]\nlisten = \"127.0.0.1:0\"";

/// Where a replica says that it serves.
fn address(replica: &Replica) -> SocketAddr {
    let line = replica.wait_for_line(START, |line| line.contains("serving /healthz"));
    let (_, address) = line.rsplit_once("address=").unwrap();
    address.trim().parse().unwrap()
}

/// A replica without any server: no Redis, SQLite, one job.
fn alone() -> Deployment {
    Deployment::new(std::path::Path::new(env!("CARGO_BIN_EXE_runner")))
        .job("tick", Duration::ZERO, "every = \"1s\"")
        .jobs(ADMIN)
}
