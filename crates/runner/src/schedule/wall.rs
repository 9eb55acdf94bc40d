//! Local time: what the clock of a zone shows at an instant, and at which instants it shows a time.

use std::cmp::Ordering;

use chrono::offset::LocalResult;
use chrono::{DateTime, Datelike, NaiveDate, NaiveDateTime, TimeDelta, TimeZone, Timelike, Utc};
use chrono_tz::Tz;
use croner::errors::CronError;
use croner::{CivilDate, CivilDateTime, CivilTime, CronDateTime, Resolution, Weekday};

/// No zone ever skipped or repeated more than one day.
const LONGEST_CHANGE: TimeDelta = TimeDelta::hours(25);

/// The instants at which a clock shows a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// One instant.
    Once(DateTime<Utc>),
    /// Two instants: the clock is set back in between.
    Twice(DateTime<Utc>, DateTime<Utc>),
    /// Never: the clock jumps over the time, at this instant.
    Never(DateTime<Utc>),
}

/// What the clock of `zone` shows at `instant`.
pub(super) fn wall(zone: Tz, instant: DateTime<Utc>) -> NaiveDateTime {
    instant.with_timezone(&zone).naive_local()
}

/// When the clock of `zone` shows `wall`.
pub(super) fn shown(zone: Tz, wall: NaiveDateTime) -> Shown {
    match zone.from_local_datetime(&wall) {
        LocalResult::Single(instant) => Shown::Once(instant.to_utc()),
        LocalResult::Ambiguous(a, b) => Shown::Twice(a.min(b).to_utc(), a.max(b).to_utc()),
        LocalResult::None => Shown::Never(end_of_gap(zone, wall)),
    }
}

/// The instant at which the clock jumps over `wall`.
fn end_of_gap(zone: Tz, wall: NaiveDateTime) -> DateTime<Utc> {
    let exists = |seconds: i64| zone.from_local_datetime(&(wall + TimeDelta::seconds(seconds))).earliest();
    let (mut inside, mut outside) = (0, LONGEST_CHANGE.num_seconds());
    while outside - inside > 1 {
        let middle = inside + (outside - inside) / 2;
        if exists(middle).is_none() { inside = middle } else { outside = middle }
    }
    exists(outside).map_or_else(|| wall.and_utc(), |instant| instant.to_utc())
}

/// The instant in `(from, until]` at which the clock of `zone` is put forward or back, if what it is
/// ahead of UTC differs at the two. Meant for spans with one change at most.
pub(super) fn change_between(zone: Tz, from: DateTime<Utc>, until: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let ahead = |instant: DateTime<Utc>| wall(zone, instant) - instant.naive_utc();
    let before = ahead(from);
    if ahead(until) == before {
        return None;
    }
    let (mut old, mut new) = (0, (until - from).num_seconds());
    while new - old > 1 {
        let middle = old + (new - old) / 2;
        if ahead(from + TimeDelta::seconds(middle)) == before { old = middle } else { new = middle }
    }
    Some(from + TimeDelta::seconds(new))
}

/// A local time, for croner to walk over.
///
/// It has no zone on purpose: croner is right about the calendar, and what a zone does to a time is
/// decided in one place, `cron`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Face(pub(super) NaiveDateTime);

impl CronDateTime for Face {
    fn to_civil(&self) -> CivilDateTime {
        let Self(face) = self;
        CivilDateTime::new(
            CivilDate::from_parts_unchecked(face.year(), face.month(), face.day()),
            CivilTime::from_parts_unchecked(face.hour(), face.minute(), face.second()),
        )
    }

    fn civil_weekday(&self) -> Weekday {
        Weekday::from_days_from_sunday(self.0.weekday().num_days_from_sunday())
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        NaiveDate::from_ymd_opt(civil.year(), civil.month(), civil.day())
            .ok_or(CronError::InvalidDate)?
            .and_hms_opt(civil.hour(), civil.minute(), civil.second())
            .ok_or(CronError::InvalidTime)
            .map(|face| Resolution::Single(Self(face)))
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0.checked_add_signed(TimeDelta::try_seconds(seconds)?).map(Self)
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

#[cfg(test)]
mod tests {
    use chrono_tz::{America, Australia, Europe, Pacific};

    use super::*;

    fn at(text: &str) -> DateTime<Utc> {
        text.parse().unwrap()
    }

    fn face(text: &str) -> NaiveDateTime {
        text.parse().unwrap()
    }

    #[test]
    fn a_skipped_time_is_jumped_over_at_the_end_of_the_gap() {
        let skipped = |zone, wall| shown(zone, face(wall));
        assert_eq!(skipped(Europe::Berlin, "2026-03-29T02:30:00"), Shown::Never(at("2026-03-29T01:00:00Z")));
        assert_eq!(
            skipped(Australia::Lord_Howe, "2026-10-04T02:00:00"),
            Shown::Never(at("2026-10-03T15:30:00Z"))
        );
        assert_eq!(
            skipped(America::Sao_Paulo, "2018-11-04T00:00:00"),
            Shown::Never(at("2018-11-04T03:00:00Z"))
        );
        assert_eq!(skipped(Pacific::Apia, "2011-12-30T00:00:00"), Shown::Never(at("2011-12-30T10:00:00Z")));
    }

    #[test]
    fn a_repeated_time_is_shown_before_and_after_the_change() {
        let berlin = Europe::Berlin;
        let (first, second) = (at("2026-10-25T00:30:00Z"), at("2026-10-25T01:30:00Z"));
        assert_eq!(shown(berlin, face("2026-10-25T02:30:00")), Shown::Twice(first, second));
        assert_eq!(change_between(berlin, first, second), Some(at("2026-10-25T01:00:00Z")));
        assert_eq!(change_between(berlin, second, at("2026-10-26T01:30:00Z")), None);
    }
}
