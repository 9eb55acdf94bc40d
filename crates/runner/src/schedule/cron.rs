//! Cron: an expression in our dialect, read by us, walked by croner, placed in time by us.

use std::hash::{Hash, Hasher};

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Timelike, Utc};
use chrono_tz::Tz;
use croner::parser::{CronParser, Seconds, Year};

use super::field::{Field, Reader, Reading};
use super::wall::{Face, Shown, change_between, shown, wall};
use super::{ScheduleError, advice, dialect};
use crate::firing::JobName;

/// The years croner walks; the Gregorian calendar repeats itself every 400.
const YEARS: std::ops::Range<i32> = 1..5000;

/// A cron schedule in a zone.
#[derive(Clone, Debug)]
pub(super) struct Cron {
    zone: Tz,
    /// Every field spelled out: what tells two schedules apart.
    spelled: String,
    /// Follows elapsed time over a change of the clock; otherwise it names times of the day.
    repeats: bool,
    calendar: croner::Cron,
    warnings: Vec<String>,
}

impl Cron {
    pub(super) fn new(expr: &str, zone: Tz, job: Option<&JobName>) -> Result<Self, ScheduleError> {
        let words = dialect::fields(expr)?;
        let without_second = if words.len() == 5 { Some("0") } else { None };
        let fields = without_second.into_iter().chain(words.iter().copied());
        let readings = Field::ALL
            .into_iter()
            .zip(fields)
            .map(|(field, text)| Reader::read(field, text, job))
            .collect::<Result<Vec<Reading>, _>>()?;

        let spelled = spell(&readings);
        let calendar = CronParser::builder()
            .seconds(Seconds::Required)
            .year(Year::Disallowed)
            .build()
            .parse(&spelled)
            .map_err(|error| ScheduleError::new(format!("{expr:?} is not understood: {error}")))?;
        let repeats = readings.iter().take(3).any(|reading| reading.repeats);
        let warnings = advice::on(&readings, &words);
        let cron = Self { zone, spelled, repeats, calendar, warnings };
        if !cron.ever_fires() {
            return Err(advice::never(&readings, &words));
        }
        Ok(cron)
    }

    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether `instant` fires because the clock shows a time that the schedule names, and not because
    /// it jumped over one.
    pub(super) fn names(&self, instant: DateTime<Utc>) -> bool {
        let face = wall(self.zone, instant);
        self.next_face(face, true) == Some(face)
    }

    pub(super) const fn zone(&self) -> Tz {
        self.zone
    }

    pub(super) const fn follows_elapsed_time(&self) -> bool {
        self.repeats
    }

    /// The first instant after `after`, by nothing but the schedule, the zone and `after`.
    pub(super) fn next(&self, after: DateTime<Utc>) -> Option<DateTime<Utc>> {
        // Instants are whole seconds, so what follows 12:00:00.5 is what follows 12:00:00.
        let mut after = after.with_nanosecond(0)?;
        if after.naive_utc().date() < NaiveDate::from_ymd_opt(YEARS.start, 1, 2)? {
            after = NaiveDate::from_ymd_opt(YEARS.start, 1, 2)?.and_time(NaiveTime::MIN).and_utc();
        }
        if after.naive_utc().date() > NaiveDate::from_ymd_opt(YEARS.end, 1, 1)? {
            return None;
        }
        let face = wall(self.zone, after);
        let mut face = match self.second_pass(after, face) {
            None => self.next_face(face, false)?,
            Some(change) => {
                // Up to the change the wall clock and elapsed time run alike.
                let first_pass = self.next_face(face, false).map(|next| after + (next - face));
                if let Some(instant) = first_pass.filter(|instant| *instant < change) {
                    return Some(instant);
                }
                self.next_face(wall(self.zone, change), true)?
            }
        };
        loop {
            face = match shown(self.zone, face) {
                Shown::Once(instant) if instant > after => return Some(instant),
                Shown::Once(_) => self.next_face(face, false)?,
                Shown::Twice(first, _) if first > after => return Some(first),
                Shown::Twice(_, second) if self.repeats => return Some(second),
                // A time of the day fires at its first pass only, and that one is over.
                Shown::Twice(first, second) => {
                    let change = change_between(self.zone, first, second)?;
                    self.next_face(face + (change - first), true)?
                }
                // Never an instant that has passed: a planner must move on whatever a zone does.
                Shown::Never(change) if !self.repeats && change > after => return Some(change),
                Shown::Never(change) => self.next_face(wall(self.zone, change), true)?,
            }
        }
    }

    /// The change of the clock that lies ahead of `after` and brings times back which have passed,
    /// if that matters: a wall clock alone would walk past the repeated hour.
    fn second_pass(&self, after: DateTime<Utc>, face: NaiveDateTime) -> Option<DateTime<Utc>> {
        if !self.repeats {
            return None;
        }
        match shown(self.zone, face) {
            Shown::Twice(first, second) if first == after => change_between(self.zone, first, second),
            _ => None,
        }
    }

    /// The next time that the calendar names, on a clock that is never put forward or back.
    fn next_face(&self, face: NaiveDateTime, inclusive: bool) -> Option<NaiveDateTime> {
        // An error means: not before the year 5000.
        self.calendar.find_next_occurrence(&Face(face), inclusive).ok().map(|Face(next)| next)
    }

    /// What does not fire in one whole cycle of the calendar never does; a cycle that ends where
    /// croner stops searching keeps the search short.
    fn ever_fires(&self) -> bool {
        NaiveDate::from_ymd_opt(YEARS.end - 400, 1, 1)
            .and_then(|start| self.next_face(start.and_time(NaiveTime::MIN), true))
            .is_some()
    }
}

/// Two schedules are the same if they ask for the same values in the same way, however written.
impl PartialEq for Cron {
    fn eq(&self, other: &Self) -> bool {
        (self.zone, &self.spelled, self.repeats) == (other.zone, &other.spelled, other.repeats)
    }
}

impl Eq for Cron {}

impl Hash for Cron {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.zone, &self.spelled, self.repeats).hash(state);
    }
}

/// The expression in croner's words.
///
/// croner takes a day field as unrestricted only if it is `*`. We take every field that begins with
/// `*` (so did the first cron), which makes the two day fields an AND; croner's word for that is `+`.
fn spell(readings: &[Reading]) -> String {
    let mut words: Vec<String> =
        Field::ALL.into_iter().zip(readings).map(|(field, reading)| reading.spelled(field)).collect();
    if let [.., day, _, weekday] = readings
        && (day.unrestricted || weekday.unrestricted)
        && words[3] != "*"
        && words[5] != "*"
    {
        words[5].insert(0, '+');
    }
    words.join(" ")
}
