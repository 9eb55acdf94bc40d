//! jobs.toml: read, layered, checked, explained.
//!
//! [`Config::load`] walks the whole file and finds everything that is wrong with it, each problem with
//! its line, a caret, the dotted key and a hint. The file overrides the defaults, and the environment
//! (`RUNNER__LOCK__URL`) overrides the file. Nothing outside this room reads the environment or a
//! configuration file. What the file may say is one table: `keys/`. How a problem is found in the file
//! and shown is `diagnose/`.

mod address;
mod budget;
mod diagnose;
mod document;
mod duration;
mod environment;
mod job;
mod keys;
mod layers;
mod load;
mod params;
mod secret;
mod section;
mod sections;
mod settings;
mod text_file;
mod trigger;
mod value;
mod walk;
mod warnings;
mod zone;

pub use crate::rules::{Backoff, Guard, Misfire, OnUnavailable, Overlap};
pub use crate::schedule::show_duration;
pub use address::LedgerKind;
pub use budget::Budget;
pub use diagnose::{ConfigErrors, Place, Problem, Quote, SourceMap, Warning};
pub(crate) use duration::duration_param;
pub use environment::{Environment, NotUnicode};
pub(crate) use params::hinted;
pub use params::{Kinds, ParamProblem, Params, read_params};

pub(crate) use keys::job_as_json;
pub use secret::Secret;
pub use settings::{
    AdminSettings, Config, JobSpec, LedgerSettings, LockSettings, LogFormat, LogSettings, RunnerSettings,
};
pub use walk::CheckLedgerUrl;
