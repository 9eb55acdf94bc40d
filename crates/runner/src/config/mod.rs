//! jobs.toml: read, layered, checked, explained.

mod policy;
mod settings;

pub use policy::{Guard, Misfire, OnUnavailable, Overlap};
pub use settings::{
    AdminSettings, Backoff, Budget, Config, JobSpec, LedgerSettings, LockSettings, LogFormat, LogSettings,
    RunnerSettings, Secret,
};
