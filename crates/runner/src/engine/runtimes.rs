//! The runtimes of a process. The code that keeps leases shares no thread with users' code, and two kinds of a
//! user share no thread with each other.

use std::collections::BTreeMap;
use std::io;

use tokio::runtime::{Builder, Handle, Runtime};

use super::job_set::JobSet;
use crate::registry::BoundJob;

/// Threads of the engine. They run the scheduler, both layers and the kinds that come with the runner. None of
/// that code blocks.
const ENGINE_THREADS: usize = 2;

/// All runtimes of a process.
#[derive(Debug)]
pub(crate) struct Runtimes {
    engine: Runtime,
    keepalive: Runtime,
    kinds: BTreeMap<String, Runtime>,
}

/// Which runtime runs which code.
#[derive(Clone, Debug)]
pub(crate) struct Homes {
    /// Renews locks and does nothing else, so that a busy engine cannot delay a renewal.
    pub(crate) keepalive: Handle,
    engine: Handle,
    kinds: BTreeMap<String, Handle>,
}

impl Runtimes {
    /// Starts the runtimes that `jobs` need.
    pub(crate) fn start(jobs: &JobSet) -> io::Result<Self> {
        let mut kinds = BTreeMap::new();
        for job in jobs.iter().filter(|job| !job.stock) {
            if !kinds.contains_key(&job.spec.kind) {
                kinds.insert(job.spec.kind.clone(), build("runner-jobs", None)?);
            }
        }
        Ok(Self {
            engine: build("runner-engine", Some(ENGINE_THREADS))?,
            keepalive: build("runner-keepalive", Some(1))?,
            kinds,
        })
    }

    /// Runs `work` on the engine's runtime, then ends all runtimes without waiting for code that does not end.
    pub(crate) fn run<T>(self, work: impl AsyncFnOnce(Homes) -> T) -> T {
        let homes = Homes {
            keepalive: self.keepalive.handle().clone(),
            engine: self.engine.handle().clone(),
            kinds: self
                .kinds
                .iter()
                .map(|(kind, runtime)| (kind.clone(), runtime.handle().clone()))
                .collect(),
        };
        let result = self.engine.block_on(work(homes));
        for (_, runtime) in self.kinds {
            runtime.shutdown_background();
        }
        self.keepalive.shutdown_background();
        self.engine.shutdown_background();
        result
    }
}

impl Homes {
    /// Everything on one runtime.
    pub(crate) fn all_on(runtime: &Handle) -> Self {
        Self { keepalive: runtime.clone(), engine: runtime.clone(), kinds: BTreeMap::new() }
    }

    /// Where the code of `job` runs.
    pub(crate) fn of(&self, job: &BoundJob) -> &Handle {
        self.kinds.get(&job.spec.kind).unwrap_or(&self.engine)
    }
}

fn build(name: &str, threads: Option<usize>) -> io::Result<Runtime> {
    let mut builder = Builder::new_multi_thread();
    if let Some(threads) = threads {
        builder.worker_threads(threads);
    }
    builder.thread_name(name).enable_all().build()
}
