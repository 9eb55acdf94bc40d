//! What a replica shows over HTTP: whether it lives, whether it is ready, and its numbers.
//!
//! Nothing is served unless `[admin]` says where. Every route only reads, so none asks for a token
//! and none looks at the `Host` header: probes and scrapers come by whatever name they know.

mod connections;
mod numbers;
mod readiness;
mod routes;
mod server;

pub(crate) use readiness::Readiness;
pub(crate) use server::{Admin, ListenError};
