//! jobs.toml from outside: what is accepted, what is refused, and what is said about it.
#![expect(clippy::expect_used, clippy::panic, reason = "tests fail by panicking, their helpers too")]

#[path = "config/accepted.rs"]
mod accepted;
#[path = "config/chosen.rs"]
mod chosen;
#[path = "config/desk.rs"]
mod desk;
#[path = "config/documented.rs"]
mod documented;
#[path = "config/layering.rs"]
mod layering;
#[path = "config/mangled.rs"]
mod mangled;
#[path = "config/refused.rs"]
mod refused;
#[path = "config/rendered.rs"]
mod rendered;
#[path = "config/secrets.rs"]
mod secrets;
