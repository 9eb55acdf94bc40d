//! Scheduled jobs for services that run in several replicas.

mod admin;
mod cli;
pub mod clock;
pub mod config;
mod executor;
pub mod firing;
mod job;
pub mod kinds;
pub mod ledger;
mod lifecycle;
mod pulse;
mod reconcile;
mod registry;
mod runner;
mod runtimes;
pub mod schedule;
mod scheduler;
mod sweep;
mod telemetry;
mod upkeep;

pub use job::{Cancel, Cause, ContextParts, ErasedJob, Job, JobContext, JobError, Licence};
/// The client of the ledger's databases, for what a job does in its [`Transaction`].
pub use ledger::sqlx;
pub use ledger::{EffectError, Transaction};
pub use runner::{Builder, Runner};
