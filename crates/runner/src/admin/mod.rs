//! What a replica serves over HTTP: health, readiness and metrics.
//!
//! It serves nothing unless `[admin]` names an address. Every route only reads. Therefore none asks for a
//! token, and none checks the `Host` header: probes and scrapers may use any name of the host.

mod connections;
mod metrics;
mod readiness;
mod routes;
mod server;

pub(crate) use readiness::Readiness;
pub(crate) use server::{Admin, ListenError};
