//! A replica at work.
//!
//! [`replica`] constructs the parts. The [`scheduler`] and the [`queue`] bring firings to the [`executor`], the
//! corridor that every firing takes. [`reconcile`] adds the rows that are missing after a fault. [`sweep`] ends
//! runs whose owner has vanished. [`pulse`] knows whether the ledger answers and what its clock shows.
//! [`lifecycle`] drains a replica. [`runtimes`] decides which threads run which code.

mod backlog;
pub(crate) mod executor;
pub(crate) mod job_set;
mod layers;
pub(crate) mod lifecycle;
pub(crate) mod pulse;
pub(crate) mod queue;
mod reconcile;
mod replica;
pub(crate) mod runtimes;
pub(crate) mod scheduler;
mod site;
mod sweep;

pub(crate) use job_set::JobSet;
pub(crate) use layers::ledger_options;
pub use replica::Parts;
pub(crate) use replica::{Engine, StartError, embed};
pub(crate) use site::Site;
