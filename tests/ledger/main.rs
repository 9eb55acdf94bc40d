//! The ledgers: PostgreSQL, SQLite, and the book in memory that simulated worlds stand on.

#![expect(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod book;
mod check_lists;
mod conformance;
mod fixture;
mod mutants;
mod newer;
mod postgres;
mod registered_ahead;
mod sqlite;
mod worlds;
