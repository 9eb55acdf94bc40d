//! The jobs of one replica: one value that the parts of the replica subscribe to.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::ledger::JobRegistration;
use crate::registry::BoundJob;

/// Where the parts of a replica read its jobs. It always holds the newest set.
pub(crate) type SharedJobs = watch::Receiver<Arc<JobSet>>;

/// All jobs of one file, bound to their code. A set never changes. A new file makes a new set.
#[derive(Debug)]
pub(crate) struct JobSet {
    in_order: Vec<Arc<BoundJob>>,
    by_name: BTreeMap<String, Arc<BoundJob>>,
    usual_ttl: Duration,
    shortest_ttl: Duration,
}

impl JobSet {
    /// The set of these jobs, in the file's order. `usual_ttl` is used for jobs that are not in the set: another
    /// replica may have a different file.
    #[must_use]
    pub(crate) fn new(in_order: Vec<Arc<BoundJob>>, usual_ttl: Duration) -> Self {
        let by_name = in_order.iter().map(|job| (job.spec.name.to_string(), job.clone())).collect();
        let shortest_ttl = shortest_ttl(in_order.iter().map(|job| job.spec.budget.ttl), usual_ttl);
        Self { in_order, by_name, usual_ttl, shortest_ttl }
    }

    /// Every job, in the file's order.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = &Arc<BoundJob>> {
        self.in_order.iter()
    }

    /// The job of this name.
    #[must_use]
    pub(crate) fn get(&self, name: &str) -> Option<&Arc<BoundJob>> {
        self.by_name.get(name)
    }

    /// The names of all jobs.
    #[must_use]
    pub(crate) fn names(&self) -> Vec<String> {
        self.by_name.keys().cloned().collect()
    }

    /// The ttl of a job that is not in the set.
    #[must_use]
    pub(crate) const fn usual_ttl(&self) -> Duration {
        self.usual_ttl
    }

    /// The shortest ttl of any job. Work that must finish within every lease uses it as its limit.
    #[must_use]
    pub(crate) const fn shortest_ttl(&self) -> Duration {
        self.shortest_ttl
    }

    /// The longest `kill_grace` of any job.
    #[must_use]
    pub(crate) fn longest_kill_grace(&self) -> Duration {
        self.iter().map(|job| job.spec.budget.kill_grace).max().unwrap_or_default()
    }

    /// The jobs as the ledger knows them.
    #[must_use]
    pub(crate) fn registrations(&self) -> Vec<JobRegistration> {
        self.iter().map(|job| registration(job)).collect()
    }
}

/// A job as the ledger knows it.
#[must_use]
pub(crate) fn registration(job: &BoundJob) -> JobRegistration {
    JobRegistration { name: job.spec.name.to_string(), spec_hash: job.spec.spec_hash() }
}

/// The shortest of these ttls; `usual` if there are none.
#[must_use]
pub(super) fn shortest_ttl(ttls: impl Iterator<Item = Duration>, usual: Duration) -> Duration {
    ttls.min().unwrap_or(usual)
}
