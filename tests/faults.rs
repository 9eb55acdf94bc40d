//! Ordinary faults, on real servers and real processes: no single failure of Redis, PostgreSQL or
//! one replica doubles or loses a firing.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "faults/blocking.rs"]
mod blocking;
#[path = "faults/cluster.rs"]
mod cluster;
#[path = "faults/ledger_away.rs"]
mod ledger_away;
#[path = "faults/lock_away.rs"]
mod lock_away;
#[path = "faults/owner_gone.rs"]
mod owner_gone;
#[path = "faults/shutdown.rs"]
mod shutdown;
