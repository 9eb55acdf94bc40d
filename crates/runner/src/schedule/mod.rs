//! Schedules: the declared rule, and the pure function from it to instants.
//!
//! Nothing here knows the current time, the replica or what ran before. Every answer follows from the
//! rule and the question, so that all replicas give the same answer.

mod advice;
mod clocks;
mod cron;
mod dialect;
mod duration;
mod error;
mod every;
mod field;
mod hash;
mod jitter;
mod timetable;
mod wall;

pub use clocks::{DstEffect, DstNote};
pub use duration::show as show_duration;
pub(crate) use duration::{InvalidDuration, parse as parse_duration};
pub use error::ScheduleError;
pub use jitter::delay;
pub use timetable::Timetable;
