//! jobs.toml from outside: what is accepted, what is refused, and what is said about it.

mod accepted;
mod chosen;
mod desk;
mod layering;
mod mangled;
mod refused;
mod rendered;
mod secrets;
