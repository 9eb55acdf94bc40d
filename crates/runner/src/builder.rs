//! What a user's own binary starts with: its kinds, and then the command line or a replica inside a test.

use std::error::Error;
use std::ffi::OsString;
use std::future::Future;
use std::process::ExitCode;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use tokio::sync::watch;

use crate::config::{Config, ConfigErrors};
use crate::engine::{self, JobSet, Parts};
use crate::job::Job;
use crate::registry::Registry;

/// The entry of a user's own binary.
///
/// ```no_run
/// # struct Reconcile;
/// # impl runner::Job for Reconcile {
/// #     async fn run(&self, _: &runner::JobContext) -> Result<(), runner::JobError> { Ok(()) }
/// # }
/// #[derive(serde::Deserialize)]
/// struct Params {
///     batch: u32,
/// }
///
/// fn main() -> std::process::ExitCode {
///     runner::Runner::builder().kind("reconcile", |_params: Params| Ok(Reconcile)).main()
/// }
/// ```
#[derive(Debug)]
pub struct Runner(());

impl Runner {
    /// Starts with the kinds that every runner has.
    #[must_use]
    pub fn builder() -> Builder {
        Builder { registry: Registry::stock() }
    }
}

/// Collects a binary's own kinds.
#[derive(Debug)]
pub struct Builder {
    registry: Registry,
}

impl Builder {
    /// Adds a kind: `make` turns a job's `params` into the code that runs it. It is called once for
    /// each job of this kind when the file is loaded, so an error it returns stops the start.
    #[must_use]
    pub fn kind<P, J, F>(mut self, name: &str, make: F) -> Self
    where
        P: DeserializeOwned,
        J: Job,
        F: Fn(P) -> Result<J, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    {
        self.registry.add(name, make);
        self
    }

    /// Reads the command line and does what it says. Owns its runtimes, so it must not be called
    /// from within one.
    #[must_use]
    pub fn main(self) -> ExitCode {
        self.main_from(std::env::args_os())
    }

    /// [`main`](Self::main) with a command line of the caller's own; the first argument is the
    /// program's name.
    #[must_use]
    pub fn main_from(self, args: impl IntoIterator<Item = OsString>) -> ExitCode {
        crate::cli::main(&self.registry, args)
    }
}

/// Fires the jobs of `config` on `parts`, with the kinds of `builder`, until `stop` ends. Then it drains as at
/// a signal. `config` says which jobs and `parts` say where: what `config` says of urls, `[admin]` and `[log]`
/// has no effect. Returns whether the replica ended in order.
///
/// Everything runs on the caller's runtime, which needs its timers: a job that blocks its thread
/// blocks what keeps its leases, too. A process of its own, by [`Builder::main`], does not have that.
///
/// # Errors
/// [`ConfigErrors`] when a kind refuses its params.
///
/// # Cancel safety
/// If dropped, it fires nothing more. Its runs end only with the runtime.
pub async fn embed(
    builder: &Builder,
    config: &Config,
    parts: Parts,
    stop: impl Future<Output = ()>,
) -> Result<bool, ConfigErrors> {
    let jobs = builder.registry.bind(config)?;
    let (_replace, jobs) = watch::channel(Arc::new(JobSet::new(jobs, config.lock.ttl)));
    Ok(engine::embed(parts, config, jobs, stop).await)
}
