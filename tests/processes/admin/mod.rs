//! What a replica shows over HTTP: health, readiness and numbers of real processes.

#![expect(clippy::disallowed_methods, reason = "a test is a program that reads its own environment")]

mod documented;
mod exposition;
pub(crate) mod listening;
pub(crate) mod numbers;
mod readiness;

use std::net::SocketAddr;
use std::time::Duration;

use testbed::{Deployment, Replica};

use crate::program;

/// Longer than a start takes on a busy machine.
const START: Duration = Duration::from_secs(30);

/// Each replica serves on a port that the system chooses.
pub(crate) const ADMIN: &str = "[admin]\nlisten = \"127.0.0.1:0\"";

/// Where a replica says that it serves.
fn address(replica: &Replica) -> SocketAddr {
    let line = replica.wait_for_line(START, |line| line.contains("serving /healthz"));
    let (_, address) = line.rsplit_once("address=").unwrap();
    address.trim().parse().unwrap()
}

/// A replica without any server: no Redis, SQLite, one job.
fn alone() -> Deployment {
    Deployment::new(program()).job("tick", Duration::ZERO, "every = \"1s\"").jobs(ADMIN)
}
