//! What becomes of a firing in the corridor, one replica at a time: failures, panics, timeouts, code
//! that will not stop, locks that others hold.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

#[path = "corridor/endings.rs"]
mod endings;
#[path = "corridor/exec.rs"]
mod exec;
#[path = "corridor/held.rs"]
mod held;
#[path = "corridor/kinds.rs"]
mod kinds;
