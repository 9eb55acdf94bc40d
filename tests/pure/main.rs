//! What needs no server and no process of its own: jobs.toml, timetables, and the model of the protocol.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod config;
mod protocol;
mod schedules;
