//! A second opinion on what a cron expression means: brute force over every second, or minute, of a
//! window. It shares no code with the product, searches nothing, and asks the zone one thing only:
//! what its clock shows at an instant.

use chrono::{DateTime, Datelike, Days, NaiveDate, NaiveDateTime, TimeDelta, Timelike, Utc, Weekday};
use chrono_tz::Tz;

/// An expression, read without any checks.
pub(crate) struct Reference {
    text: [String; 6],
    by_elapsed_time: bool,
}

impl Reference {
    /// Reads an expression that is known to be a good one.
    pub(crate) fn new(expr: &str) -> Self {
        let mut words: Vec<String> = expr.split_whitespace().map(str::to_uppercase).collect();
        if words.len() == 5 {
            words.insert(0, "0".into());
        }
        let text: [String; 6] = words.try_into().expect("five or six fields");
        let by_elapsed_time = text[..3].iter().any(|field| field.contains(['*', '/']));
        Self { text, by_elapsed_time }
    }

    /// Every instant after `after` until `until`.
    pub(crate) fn between(&self, zone: Tz, after: DateTime<Utc>, until: DateTime<Utc>) -> Vec<DateTime<Utc>> {
        let shows = |instant: DateTime<Utc>| instant.with_timezone(&zone).naive_local();
        // What the clock shows changes by whole minutes, and so may the walk.
        let whole = self.text[0] == "0" && after.second() == 0;
        let stride = TimeDelta::seconds(if whole { 60 } else { 1 });
        let mut fires = Vec::new();
        // More than the longest repetition before the window, to know what has been shown already.
        let before = (0..26 * 60).map(|n| after - TimeDelta::minutes(n));
        let ends = before.flat_map(|end| [end, end - TimeDelta::seconds(1)]);
        let mut highest = ends.map(shows).max().unwrap();
        let (mut instant, mut shown) = (after, shows(after));
        while instant < until {
            instant += stride;
            let shows_now = shows(instant);
            let jumped = shows_now - shown > stride;
            let fire = if self.by_elapsed_time {
                self.matches(shows_now)
            } else {
                let first_time = shows_now > highest;
                let jumped_over = jumped && {
                    let mut skipped = shown + stride;
                    std::iter::from_fn(|| {
                        let this = skipped;
                        skipped += stride;
                        (this < shows_now).then_some(this)
                    })
                    .any(|skipped| self.matches(skipped))
                };
                jumped_over || (first_time && self.matches(shows_now))
            };
            if fire {
                fires.push(instant);
            }
            shown = shows_now;
            highest = highest.max(shown);
        }
        fires
    }

    fn matches(&self, face: NaiveDateTime) -> bool {
        let [second, minute, hour, day, month, weekday] = &self.text;
        let date = face.date();
        if !(has(second, face.second(), 0, 59, &[])
            && has(minute, face.minute(), 0, 59, &[])
            && has(hour, face.hour(), 0, 23, &[]))
        {
            return false;
        }
        let months = ["", "JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
        if !has(month, face.month(), 1, 12, &months) {
            return false;
        }
        let by_day = day.split(',').any(|item| is_day(item, date));
        let by_weekday = weekday.split(',').any(|item| is_weekday(item, date));
        let free = |field: &str| field.starts_with('*') || field == "?";
        if free(day) || free(weekday) { by_day && by_weekday } else { by_day || by_weekday }
    }
}

fn has(field: &str, value: u32, low: u32, high: u32, names: &[&str]) -> bool {
    field.split(',').any(|item| item_has(item, value, low, high, names))
}

fn item_has(item: &str, value: u32, low: u32, high: u32, names: &[&str]) -> bool {
    let number = |text: &str| -> u32 {
        names.iter().position(|name| *name == text).map_or_else(|| text.parse().unwrap(), |n| n as u32)
    };
    let (body, step) =
        item.split_once('/').map_or((item, None), |(b, s)| (b, Some(s.parse::<u32>().unwrap())));
    let (from, to) = match body.split_once('-') {
        _ if body == "*" || body == "?" => (low, high),
        Some((from, to)) => (number(from), number(to)),
        None if step.is_some() => (number(body), high),
        None => (number(body), number(body)),
    };
    value >= from && value <= to && (value - from).is_multiple_of(step.unwrap_or(1))
}

fn is_day(item: &str, date: NaiveDate) -> bool {
    let first = date.with_day(1).unwrap();
    let last = (28..=31).rev().find_map(|day| date.with_day(day)).unwrap();
    let works = |date: NaiveDate| !matches!(date.weekday(), Weekday::Sat | Weekday::Sun);
    match item {
        "L" => date == last,
        "LW" => works(date) && !(date.day()..=31).skip(1).filter_map(|d| date.with_day(d)).any(works),
        _ => match item.strip_suffix('W') {
            None => item_has(item, date.day(), 1, 31, &[]),
            Some(day) => {
                // The nearest working day of the same month; Friday before Monday.
                let Some(wanted) = date.with_day(day.parse().unwrap()) else { return false };
                let near = [0_i64, -1, 1, -2, 2].into_iter().map(|by| wanted + TimeDelta::days(by));
                near.filter(|near| (first..=last).contains(near)).find(|near| works(*near)) == Some(date)
            }
        },
    }
}

fn is_weekday(item: &str, date: NaiveDate) -> bool {
    let names = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];
    let today = date.weekday().num_days_from_sunday();
    let is_today = |text: &str| {
        let day = names.iter().position(|name| *name == text).unwrap_or_else(|| text.parse().unwrap());
        day % 7 == today as usize
    };
    if let Some((day, nth)) = item.split_once('#') {
        return is_today(day) && date.day().div_ceil(7) == nth.parse::<u32>().unwrap();
    }
    if let Some(day) = item.strip_suffix('L').filter(|day| !day.is_empty()) {
        return is_today(day) && (date + Days::new(7)).month() != date.month();
    }
    item_has(item, today, 0, 6, &names) || (today == 0 && item_has(item, 7, 0, 6, &names) && item != "*")
}
