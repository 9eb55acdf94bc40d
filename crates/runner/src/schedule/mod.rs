//! The declared rule and the pure function from it to instants.

mod timetable;

pub use timetable::{ScheduleError, Timetable};
