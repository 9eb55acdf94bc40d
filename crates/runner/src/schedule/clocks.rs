//! Daylight saving time: what a change of the clocks does to a firing, for people.

use std::fmt::{self, Display};

use chrono::{DateTime, NaiveDateTime, NaiveTime, TimeDelta, Utc};
use chrono_tz::Tz;

use super::cron::Cron;
use super::wall::{Shown, change_between, shown, wall};

/// What a change of the clocks does to a firing on the same local day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DstNote {
    /// When the clocks change.
    pub change: DateTime<Utc>,
    /// The local time at which they change.
    pub from: NaiveDateTime,
    /// The local time that follows.
    pub to: NaiveDateTime,
    /// What that does to the firing.
    pub effect: DstEffect,
}

/// What a change of the clocks does to a firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DstEffect {
    /// Nothing: it is only on the same day.
    SameDay,
    /// Its local time does not exist, so it fires when the clocks jump.
    Moved,
    /// Its local time occurs twice; this is the first, and the second does not fire.
    FirstOnly,
    /// Its local time occurs twice and fires twice; this is the first.
    FirstOfTwo,
    /// Its local time occurs twice and fires twice; this is the second.
    SecondOfTwo,
}

impl DstNote {
    /// The note on `firing`, of `cron` if a cron schedule of this very zone asks for it.
    pub(super) fn on(firing: DateTime<Utc>, zone: Tz, cron: Option<&Cron>) -> Option<Self> {
        let today = wall(zone, firing).date();
        let starts = match shown(zone, today.and_time(NaiveTime::MIN)) {
            Shown::Once(at) | Shown::Twice(at, _) | Shown::Never(at) => at,
        };
        let ends = match shown(zone, today.succ_opt()?.and_time(NaiveTime::MIN)) {
            Shown::Once(at) | Shown::Twice(_, at) | Shown::Never(at) => at,
        };
        let second = TimeDelta::seconds(1);
        // A second before, so that a change at midnight belongs to the day that it begins.
        let change = change_between(zone, starts - second, ends - second)?;
        let ahead = wall(zone, change - second) - (change - second).naive_utc();

        let effect = match shown(zone, wall(zone, firing)) {
            Shown::Twice(first, _) if first == firing => match cron {
                Some(cron) if !cron.follows_elapsed_time() => DstEffect::FirstOnly,
                Some(_) | None => DstEffect::FirstOfTwo,
            },
            Shown::Twice(..) => DstEffect::SecondOfTwo,
            Shown::Once(_) | Shown::Never(_)
                if firing == change && cron.is_some_and(|cron| !cron.names(firing)) =>
            {
                DstEffect::Moved
            }
            Shown::Once(_) | Shown::Never(_) => DstEffect::SameDay,
        };
        Some(Self { change, from: change.naive_utc() + ahead, to: wall(zone, change), effect })
    }
}

impl Display for DstNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (from, to) = (self.from.format("%H:%M"), self.to.format("%H:%M"));
        let way = if self.to > self.from { "forward" } else { "back" };
        write!(f, "clocks go {way} from {from} to {to}")?;
        if self.from.date() != self.to.date() {
            write!(f, " of {}", self.to.date())?;
        }
        f.write_str(match self.effect {
            DstEffect::SameDay => "",
            DstEffect::Moved => "; its time does not exist on this day, so it fires when the clocks change",
            DstEffect::FirstOnly => "; its time occurs twice, and it fires at the first only",
            DstEffect::FirstOfTwo => "; its time occurs twice, this is the first",
            DstEffect::SecondOfTwo => "; its time occurs twice, this is the second",
        })
    }
}
