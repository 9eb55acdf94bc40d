//! What is wrong with a file, and how it is said: where it stands, what may be shown of it, and
//! what the reader probably meant.

mod duplicate;
mod findings;
pub(super) mod hints;
mod key_path;
mod known_keys;
mod lines;
mod mask;
mod problem;
mod source_map;
pub(super) mod syntax;
mod telling;

pub(super) use findings::{Collected, Finding, Findings, Reported, Spot};
pub(super) use key_path::KeyPath;
pub(super) use known_keys::{Exposure, KnownKeys};
pub use problem::{ConfigErrors, Place, Problem, Quote, Warning};
pub use source_map::SourceMap;
pub(super) use telling::is_telling_text;
