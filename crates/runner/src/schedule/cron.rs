//! Cron: we read the expression, croner walks the calendar, we place the result in a time zone.

use std::hash::{Hash, Hasher};

use chrono::{DateTime, NaiveDate, NaiveDateTime, NaiveTime, Timelike, Utc};
use chrono_tz::Tz;
use croner::parser::{CronParser, Seconds, Year};

use super::field::{Field, FieldReader, FieldSpec};
use super::wall::{Face, Shown, change_between, shown, wall};
use super::{ScheduleError, advice, dialect};
use crate::firing::JobName;

/// The years that croner walks. The Gregorian calendar repeats after 400 years.
const YEARS: std::ops::Range<i32> = 1..5000;

/// A cron schedule in a zone.
#[derive(Clone, Debug)]
pub(super) struct Cron {
    zone: Tz,
    /// Every field in croner's spelling. Two schedules with the same spelling are the same.
    spelled: String,
    /// It fires every so often and follows elapsed time when the clocks change. Otherwise it names times
    /// of the day.
    repeats: bool,
    calendar: croner::Cron,
    warnings: Vec<String>,
}

impl Cron {
    pub(super) fn new(expr: &str, zone: Tz, job: Option<&JobName>) -> Result<Self, ScheduleError> {
        let words = dialect::fields(expr)?;
        let without_second = if words.len() == 5 { Some("0") } else { None };
        let fields = without_second.into_iter().chain(words.iter().copied());
        let specs = Field::ALL
            .into_iter()
            .zip(fields)
            .map(|(field, text)| FieldReader::read(field, text, job))
            .collect::<Result<Vec<FieldSpec>, _>>()?;

        let spelled = spell(&specs);
        let calendar = CronParser::builder()
            .seconds(Seconds::Required)
            .year(Year::Disallowed)
            .build()
            .parse(&spelled)
            .map_err(|error| ScheduleError::new(format!("{expr:?} cannot be read: {error}")))?;
        let repeats = specs.iter().take(3).any(|spec| spec.repeats);
        let warnings = advice::on(&specs, &words);
        let cron = Self { zone, spelled, repeats, calendar, warnings };
        if !cron.ever_fires() {
            return Err(advice::never(&specs, &words));
        }
        Ok(cron)
    }

    pub(super) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Whether the schedule names the local time of `instant`. If not, `instant` fires because the clocks
    /// jumped over a time that it names.
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

    /// The first instant after `after`. It depends on the schedule, the zone and `after` only.
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
                // Until the change, local time and elapsed time advance equally.
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
                // Never an instant that has passed: a planner must advance whatever a zone does.
                Shown::Never(change) if !self.repeats && change > after => return Some(change),
                Shown::Never(change) => self.next_face(wall(self.zone, change), true)?,
            }
        }
    }

    /// The next change of the clocks after `after`, if it repeats an hour that a schedule of elapsed time
    /// must fire in again. Local time alone would skip the second pass of that hour.
    fn second_pass(&self, after: DateTime<Utc>, face: NaiveDateTime) -> Option<DateTime<Utc>> {
        if !self.repeats {
            return None;
        }
        match shown(self.zone, face) {
            Shown::Twice(first, second) if first == after => change_between(self.zone, first, second),
            _ => None,
        }
    }

    /// The next local time that the calendar names, without daylight saving time.
    fn next_face(&self, face: NaiveDateTime, inclusive: bool) -> Option<NaiveDateTime> {
        // An error means: not before the year 5000.
        self.calendar.find_next_occurrence(&Face(face), inclusive).ok().map(|Face(next)| next)
    }

    /// Whether it fires in one whole cycle of the calendar. If not, it never does. The cycle ends where
    /// croner stops searching, which keeps the search short.
    fn ever_fires(&self) -> bool {
        NaiveDate::from_ymd_opt(YEARS.end - 400, 1, 1)
            .and_then(|start| self.next_face(start.and_time(NaiveTime::MIN), true))
            .is_some()
    }
}

/// Two schedules are the same if they name the same values in the same way, however they are written.
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

/// The expression in croner's spelling.
///
/// For croner a day field is unrestricted only if it is `*`. For us it is if it begins with `*`, as in the
/// first cron. Then both day fields must match; croner's sign for that is `+`.
fn spell(specs: &[FieldSpec]) -> String {
    let mut words: Vec<String> =
        Field::ALL.into_iter().zip(specs).map(|(field, spec)| spec.spelled(field)).collect();
    if let [.., day, _, weekday] = specs
        && (day.unrestricted || weekday.unrestricted)
        && words[3] != "*"
        && words[5] != "*"
    {
        words[5].insert(0, '+');
    }
    words.join(" ")
}
