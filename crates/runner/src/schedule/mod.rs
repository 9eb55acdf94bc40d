//! The declared rule and the pure function from it to instants.
//!
//! Nothing here knows what time it is, where the process runs or what ran before: every answer
//! follows from the rule and the question, so that all replicas give the same one.

mod advice;
mod clocks;
mod cron;
mod dialect;
mod every;
mod field;
mod hash;
mod jitter;
mod timetable;
mod wall;

pub use clocks::{DstEffect, DstNote};
pub use jitter::delay;
pub use timetable::{ScheduleError, Timetable};

/// The release of the IANA zone rules that this binary was built with, as in `2025b`. Replicas with
/// different rules may mean different instants.
pub const ZONE_RULES: &str = chrono_tz::IANA_TZDB_VERSION;
