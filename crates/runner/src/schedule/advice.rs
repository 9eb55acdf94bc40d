//! Warnings about an expression that is valid but may not mean what its author thinks.

use super::ScheduleError;
use super::field::{Field, FieldSpec};

/// Warnings about `specs`, which were written as `words`.
pub(super) fn on(specs: &[FieldSpec], words: &[&str]) -> Vec<String> {
    let [second, minute, hour, day, month, weekday] = specs else { return Vec::new() };
    let mut warnings = Vec::new();

    if second.is_full(Field::Second) {
        let rest = words.get(1..).unwrap_or_default().join(" ");
        let often = if minute.is_full(Field::Minute) && hour.is_full(Field::Hour) {
            "fires every second"
        } else {
            "fires every second of the minutes it names"
        };
        warnings.push(format!("{often}; to fire once a minute, begin with 0: \"0 {rest}\""));
    }
    for (field, spec) in Field::ALL.into_iter().zip(specs) {
        warnings.extend(uneven(field, spec));
    }
    if !day.unrestricted && !weekday.unrestricted {
        warnings.push(
            "fires on the days of the month and also on the weekdays: when both are set, either one is enough"
                .into(),
        );
    }
    if weekday.unrestricted
        && day.special.is_empty()
        && let Some((first, _)) = day.ends()
        && first > shortest_month(month)
    {
        warnings.push(format!("skips months without a day {first}; write L for the last day of each month"));
    }
    let last = words.last().copied().unwrap_or_default();
    if words.contains(&"?") && last.bytes().any(|byte| byte.is_ascii_digit()) {
        warnings.push(format!(
            "looks like Quartz, where 1 is Sunday; here 1 is Monday (weekday {last:?}): write names such as MON"
        ));
    }
    warnings
}

fn uneven(field: Field, spec: &FieldSpec) -> Option<String> {
    let (step, first, last) = spec.uneven?;
    let name = field.name();
    let hint = match field {
        Field::Second => format!("; to fire every {step} seconds, write every = \"{step}s\""),
        Field::Minute => format!("; to fire every {step} minutes, write every = \"{step}m\""),
        Field::Hour => format!("; to fire every {step} hours, write every = \"{step}h\""),
        Field::Day | Field::Month | Field::Weekday => String::new(),
    };
    Some(format!("uneven step: {name} {last} is followed by {name} {first}, not by {step} later{hint}"))
}

/// The error for an expression that no date matches.
pub(super) fn never(specs: &[FieldSpec], words: &[&str]) -> ScheduleError {
    let [.., day, month, weekday] = words else {
        return ScheduleError::new("the schedule never fires");
    };
    let hint = match specs {
        [_, _, _, days, months, _] if days.ends().is_some_and(|(first, _)| first > longest_month(months)) => {
            "the month has no such day; write L for its last day"
        }
        _ => "no such day exists; check the day fields against each other",
    };
    ScheduleError::new(format!(
        "never fires: no date has day-of-month {day:?}, month {month:?} and weekday {weekday:?} ({hint})"
    ))
}

/// The lengths of the months that `month` names, with a February of so many days.
fn lengths(month: &FieldSpec, february: u32) -> impl Iterator<Item = u32> {
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    (1..).zip(lengths).filter(|(number, _)| month.values & (1 << number) != 0).map(|(_, length)| length)
}

fn longest_month(month: &FieldSpec) -> u32 {
    lengths(month, 29).max().unwrap_or(31)
}

fn shortest_month(month: &FieldSpec) -> u32 {
    lengths(month, 28).min().unwrap_or(31)
}
