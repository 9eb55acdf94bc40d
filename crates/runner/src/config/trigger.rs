//! When a job fires: exactly one of `schedule`, `every` and `at`.

use chrono_tz::Tz;

use super::diagnose::Reported;
use super::keys::job::{AT, EVERY, SCHEDULE};
use super::section::Section;
use super::value::BadValue;
use crate::firing::{JobName, instant};
use crate::schedule::{ScheduleError, Timetable, show_duration};

/// The keys, of which a job has one.
const TRIGGERS: [&str; 3] = [SCHEDULE.name(), EVERY.name(), AT.name()];

/// A rule and how it was written.
#[derive(Clone, Debug)]
pub(crate) struct Trigger {
    pub(crate) timetable: Timetable,
    pub(crate) text: String,
    /// The key it was written under.
    pub(crate) key: &'static str,
}

/// Reads the rule. The rule of a job replaces that of `[defaults]`, whichever of the keys each uses.
/// `job` seeds `H`. `[defaults]` is not a job: it has no name and needs no rule.
pub(crate) fn read(
    section: &Section<'_>,
    zone: Result<Tz, Reported>,
    job: Option<&JobName>,
) -> Result<Option<Trigger>, Reported> {
    let own = section.itself();
    let section = if TRIGGERS.iter().any(|key| own.has_itself(key)) { &own } else { section };
    let set: Vec<&str> = TRIGGERS.into_iter().filter(|key| section.sets(key)).collect();
    let refused = |error: ScheduleError| BadValue::new(error.message);
    let cron = section.read_then(&SCHEDULE, |text| {
        // With a bad zone the expression is still worth checking: in any zone.
        let timetable = Timetable::cron(&text, zone.unwrap_or(Tz::UTC), job).map_err(refused)?;
        Ok(Trigger { timetable, text: text.trim().to_owned(), key: SCHEDULE.name() })
    });
    let every = section.read_then(&EVERY, |period| {
        let timetable = Timetable::every(period).map_err(refused)?;
        let text = format!("every {}", show_duration(period));
        Ok(Trigger { timetable, text, key: EVERY.name() })
    });
    let at = section.read_then(&AT, |at| {
        let timetable = Timetable::at(at).map_err(refused)?;
        Ok(Trigger { timetable, text: format!("at {}", instant(at)), key: AT.name() })
    });
    if let [first, second, ..] = set.as_slice() {
        let message = format!("{first} and {second} exclude each other");
        return Err(section.problem(second, message, "keep one of schedule, every and at"));
    }
    Ok(cron?.or(every?).or(at?))
}
