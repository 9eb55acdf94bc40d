//! What lockcore promises, tested from outside.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on must fail")]

mod acquire;
mod conformance;
mod contention;
mod keepalive;
#[cfg(feature = "redis")]
mod mutants;
mod pauses;
#[cfg(feature = "redis")]
mod proxy;
mod public_names;
#[cfg(feature = "redis")]
mod redis_faults;
#[cfg(feature = "redis")]
mod redis_states;
mod retake;
mod scripted;
mod support;
mod warnings;
