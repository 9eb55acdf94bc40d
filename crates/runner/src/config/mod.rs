//! jobs.toml: read, layered, checked, explained.
//!
//! [`Config::load`] walks the whole file and finds everything that is wrong with it, each with its
//! line, a caret, the dotted key and a hint. Defaults lie below the file, the file below the
//! environment (`RUNNER__LOCK__URL`). Nothing outside this room reads the environment or a
//! configuration file.

mod address;
mod budget;
mod cautions;
mod diagnose;
mod document;
mod duration;
mod environment;
mod job;
mod layers;
mod load;
mod not_built;
mod params;
mod secret;
mod section;
mod sections;
mod settings;
mod text_file;
mod trigger;
mod value;
mod zone;

pub use crate::rules::{Backoff, Guard, Misfire, OnUnavailable, Overlap};
pub use address::LedgerKind;
pub use budget::Budget;
pub use diagnose::{ConfigErrors, Place, Problem, Quote, SourceMap, Warning};
pub(crate) use duration::param as duration_param;
pub use duration::show as show_duration;
pub use environment::{Environment, NotUnicode};
pub(crate) use params::hinted;
pub use params::{Kinds, ParamProblem, Params, read_params};
pub use secret::Secret;
pub use settings::{
    AdminSettings, Config, JobSpec, LedgerSettings, LockSettings, LogFormat, LogSettings, RunnerSettings,
};
