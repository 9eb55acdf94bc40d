//! When a job fires: exactly one of `schedule`, `every` and `at`.

use chrono::{DateTime, Utc};
use chrono_tz::Tz;

use super::diagnose::Reported;
use super::duration::{duration, show};
use super::section::Section;
use super::value::{Fault, text};
use crate::firing::{JobName, instant};
use crate::schedule::{ScheduleError, Timetable};

/// The keys, of which a job has one.
pub(crate) const TRIGGERS: [&str; 3] = ["schedule", "every", "at"];

/// A rule and how it was written.
#[derive(Clone, Debug)]
pub(crate) struct Trigger {
    pub(crate) timetable: Timetable,
    pub(crate) text: String,
    /// The key it was written under.
    pub(crate) key: &'static str,
}

/// Reads the rule. A job's own one replaces that of `[defaults]`, whichever of the keys it uses.
/// `job` seeds `H`; `[defaults]` is no job and has none, and needs no rule either.
pub(crate) fn read(
    section: &Section<'_>,
    zone: Result<Tz, Reported>,
    job: Option<&JobName>,
) -> Result<Option<Trigger>, Reported> {
    let own = section.itself();
    let section = if TRIGGERS.iter().any(|key| own.has_itself(key)) { &own } else { section };
    let set: Vec<&str> = TRIGGERS.into_iter().filter(|key| section.sets(key)).collect();
    let refused = |error: ScheduleError| Fault::new(error.message);
    let cron = section.read("schedule", |value| {
        let text = text(value)?;
        // With a bad zone the expression is still worth checking: in any zone.
        let timetable = Timetable::cron(text, zone.unwrap_or(Tz::UTC), job).map_err(refused)?;
        Ok(Trigger { timetable, text: text.trim().to_owned(), key: "schedule" })
    });
    let every = section.read("every", |value| {
        let period = duration(value)?;
        let timetable = Timetable::every(period).map_err(refused)?;
        Ok(Trigger { timetable, text: format!("every {}", show(period)), key: "every" })
    });
    let at = section.read("at", |value| {
        let at = point(text(value)?)?;
        let timetable = Timetable::at(at).map_err(refused)?;
        Ok(Trigger { timetable, text: format!("at {}", instant(at)), key: "at" })
    });
    if let [first, second, ..] = set.as_slice() {
        let message = format!("{first} and {second} exclude each other");
        return Err(section.problem(second, message, "keep one of schedule, every and at"));
    }
    Ok(cron?.or(every?).or(at?))
}

/// A point in time, with its offset.
fn point(text: &str) -> Result<DateTime<Utc>, Fault> {
    DateTime::parse_from_rfc3339(text.trim()).map(|at| at.to_utc()).map_err(|_| {
        Fault::new(format!("{text:?} is not a point in time with its offset"))
            .hint("write for example 2026-06-01T00:00:00Z or 2026-06-01T02:00:00+02:00")
    })
}
