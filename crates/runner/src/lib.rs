//! Scheduled jobs for services that run in several replicas.
//!
//! Jobs are declared in `jobs.toml`, and every replica fires every job. Each firing first takes a lock in
//! Redis and then writes a row under a UNIQUE constraint in PostgreSQL, so that no lost lock, frozen
//! process or wrong clock makes it run twice. The project's README says what is promised and what is not.
//!
//! # A tour
//!
//! To write a job of your own you need what stands at the root: implement [`Job`], take what you need
//! from its [`JobContext`], fail by [`JobError`], and give the job's kind a name with [`Runner::builder`].
//! For work that is committed together with its firing there is [`JobContext::transaction`].
//!
//! ```no_run
//! use runner::{Job, JobContext, JobError, Runner};
//!
//! /// The job is what jobs.toml says under `params`.
//! #[derive(serde::Deserialize)]
//! struct Greet {
//!     name: String,
//! }
//!
//! impl Job for Greet {
//!     async fn run(&self, ctx: &JobContext) -> Result<(), JobError> {
//!         ctx.set_output(format!("hello {} at {}", self.name, ctx.scheduled_at()));
//!         Ok(())
//!     }
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     Runner::builder().kind("greet", |greet: Greet| Ok(greet)).main()
//! }
//! ```
//!
//! The modules are the rooms behind it; tools and tests build on them:
//!
//! - [`firing`]: the words. One due moment of one job, its states, its fence.
//! - [`clock`]: the wall clock for schedules and the boot clock for leases, passed in everywhere.
//! - [`config`]: jobs.toml and the environment, read, checked and explained; the arithmetic of ttl, timeout
//!   and renewals ([`config::Budget`]).
//! - [`schedule`]: the pure function from a declared schedule to instants ([`schedule::Timetable`]).
//! - [`ledger`]: layer two, its traits and both databases.
//! - [`kinds`]: the jobs that come with the runner.
//!
//! Layer one is a crate of its own, `lockcore`. Everything else is private: it is reached by the command
//! line that [`Builder::main`] gives every binary.
//!
//! Durations are [`std::time::Duration`], instants are UTC, and whatever may be dropped in the middle says so
//! under "Cancel safety".

mod admin;
mod builder;
mod capture;
mod cli;
pub mod clock;
pub mod config;
mod engine;
pub mod firing;
mod job;
pub mod kinds;
pub mod ledger;
mod operate;
mod registry;
pub mod rules;
pub mod schedule;
mod telemetry;
pub mod warden;

pub use builder::{Builder, Runner};
pub use engine::Parts;
pub use engine::scheduler::Ticker;
pub use job::{Cancel, Cause, ContextParts, ErasedJob, Job, JobContext, JobError, Licence};
/// The client of the ledger's databases, for what a job does in its [`Transaction`].
pub use ledger::sqlx;
pub use ledger::{EffectError, Transaction};

// The pages whose Rust has to compile and run as it stands.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/writing-a-job.md")]
#[derive(Debug)]
pub struct WritingAJob;
