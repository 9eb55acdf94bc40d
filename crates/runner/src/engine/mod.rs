//! A replica at work: what wakes, what fires, what repairs, and how it all ends.
//!
//! [`replica`] constructs the parts. The [`scheduler`] and the [`queue`] bring firings to the
//! [`executor`], the corridor that every firing walks. [`reconcile`] and [`sweep`] repair what a fault has
//! left behind. [`pulse`] knows whether the ledger answers and what time it is there; [`lifecycle`] how
//! a replica leaves; [`runtimes`] which threads run what.

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
