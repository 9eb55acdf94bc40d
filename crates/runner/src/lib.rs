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
//! To test a job there is [`testing`]. Everything else is reached by the command line that [`Builder::main`]
//! gives every binary. The lock is a crate of its own, `lockcore`.
//!
//! Durations are [`std::time::Duration`], instants are UTC, and whatever may be dropped in the middle says so
//! under "Cancel safety".

mod admin;
mod builder;
mod capture;
mod cli;
mod clock;
mod config;
mod engine;
mod firing;
mod job;
mod kinds;
mod ledger;
mod operate;
mod registry;
mod rules;
mod schedule;
mod telemetry;
pub mod testing;
mod views;
mod warden;

pub use builder::{Builder, Runner};
pub use firing::{Cause, Fence, Origin};
pub use job::{Job, JobContext, JobError, Licence};
/// The client of the ledger's databases, for what a job does in its [`Transaction`].
pub use ledger::sqlx;
pub use ledger::{EffectError, Transaction};
/// A moment on the boot clock, which counts the time that the machine is suspended.
pub use lockcore::BootInstant;

/// What the project's own tests need. It may change at any time.
#[doc(hidden)]
pub mod internal {
    pub use crate::builder::embed;
    pub use crate::engine::{Parts, scheduler::Ticker};
    pub use crate::job::{Cancel, ContextParts, ErasedJob};

    pub mod clock {
        pub use crate::clock::*;
    }
    pub mod config {
        pub use crate::config::*;
    }
    pub mod firing {
        pub use crate::firing::*;
    }
    pub mod kinds {
        pub use crate::kinds::*;
    }
    pub mod ledger {
        pub use crate::ledger::*;
    }
    pub mod rules {
        pub use crate::rules::*;
    }
    pub mod schedule {
        pub use crate::schedule::*;
    }
    pub mod warden {
        pub use crate::warden::*;
    }
}

// The pages whose Rust has to compile and run as it stands.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/writing-a-job.md")]
#[derive(Debug)]
pub struct WritingAJob;
