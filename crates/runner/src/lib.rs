//! Scheduled jobs for services that run in several replicas.

pub mod clock;
pub mod config;
pub mod firing;
mod job;
pub mod ledger;
pub mod schedule;

pub use job::{Cancel, Cause, ErasedJob, Job, JobContext, JobError, Licence};
