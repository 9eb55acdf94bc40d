//! One field of a cron expression: which values it names, and what is wrong with it.

use super::ScheduleError;
use super::hash::stable;
use crate::firing::JobName;

const MONTHS: [&str; 12] =
    ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: [&str; 7] = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

/// One of the six fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Second,
    Minute,
    Hour,
    Day,
    Month,
    Weekday,
}

impl Field {
    pub(super) const ALL: [Self; 6] =
        [Self::Second, Self::Minute, Self::Hour, Self::Day, Self::Month, Self::Weekday];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Second => "second",
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::Day => "day-of-month",
            Self::Month => "month",
            Self::Weekday => "weekday",
        }
    }

    /// The values of `*`. A weekday may also be written 7, which is 0.
    const fn bounds(self) -> (u8, u8) {
        match self {
            Self::Second | Self::Minute => (0, 59),
            Self::Hour => (0, 23),
            Self::Day => (1, 31),
            Self::Month => (1, 12),
            Self::Weekday => (0, 6),
        }
    }

    const fn is_day(self) -> bool {
        matches!(self, Self::Day | Self::Weekday)
    }

    /// What to write, for people.
    const fn expected(self) -> &'static str {
        match self {
            Self::Second | Self::Minute => "use 0 to 59",
            Self::Hour => "use 0 to 23 (midnight is 0)",
            Self::Day => "use 1 to 31, or L for the last day",
            Self::Month => "use 1 to 12 or JAN to DEC",
            Self::Weekday => "use 0 to 7 (0 and 7 are Sunday) or SUN to SAT",
        }
    }

    /// The value that a name stands for.
    fn named(self, text: &str) -> Option<u8> {
        let (names, first): (&[&str], u8) = match self {
            Self::Month => (&MONTHS, 1),
            Self::Weekday => (&WEEKDAYS, 0),
            Self::Second | Self::Minute | Self::Hour | Self::Day => return None,
        };
        (first..).zip(names).find(|(_, name)| **name == text).map(|(value, _)| value)
    }
}

/// What one field says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSpec {
    /// Bit n: the field names the value n. Sunday is 0.
    pub(super) values: u64,
    /// Days that depend on the month: `L`, `LW`, `15W`, `1#2`, `5L`, with numbers for names.
    pub(super) special: Vec<String>,
    /// It begins with `*` or is `?`.
    pub(super) unrestricted: bool,
    /// It has a `*` or a step: it means "so often" and not "at that time".
    pub(super) repeats: bool,
    /// A step over the whole field whose last interval is shorter: (step, first, last).
    pub(super) uneven: Option<(u8, u8, u8)>,
}

impl FieldSpec {
    /// Whether it names every value of the field.
    pub(super) fn is_full(&self, field: Field) -> bool {
        let (low, high) = field.bounds();
        (low..=high).all(|value| self.values & (1 << value) != 0)
    }

    /// The smallest and the largest value that it names.
    pub(super) fn ends(&self) -> Option<(u32, u32)> {
        (self.values != 0).then(|| (self.values.trailing_zeros(), 63 - self.values.leading_zeros()))
    }

    /// The same field in the spelling that every dialect reads alike.
    pub(super) fn spelled(&self, field: Field) -> String {
        if self.is_full(field) && (self.unrestricted || !field.is_day()) {
            return "*".into();
        }
        let (low, high) = field.bounds();
        let values = (low..=high).filter(|value| self.values & (1 << value) != 0).map(|v| v.to_string());
        values.chain(self.special.iter().cloned()).collect::<Vec<_>>().join(",")
    }
}

/// Reads fields of one expression; `job` seeds `H`.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldReader<'a> {
    field: Field,
    text: &'a str,
    job: Option<&'a JobName>,
}

impl<'a> FieldReader<'a> {
    /// Reads `text` as `field`.
    pub(super) fn read(
        field: Field,
        text: &'a str,
        job: Option<&'a JobName>,
    ) -> Result<FieldSpec, ScheduleError> {
        let reader = Self { field, text, job };
        let upper = text.to_ascii_uppercase();
        let mut spec = FieldSpec { unrestricted: upper.starts_with('*'), ..FieldSpec::default() };
        if upper == "?" {
            if !field.is_day() {
                return Err(reader.wrong("`?` is for a day only; write * for every value"));
            }
            spec.unrestricted = true;
            reader.walk(&mut spec, field.bounds(), 1)?;
            return Ok(spec);
        }
        for item in upper.split(',') {
            reader.item(&mut spec, item)?;
        }
        if spec.special.iter().any(|s| s == "L") && spec.special.iter().any(|s| s == "LW") {
            return Err(reader.wrong("L and LW in one list are not supported; declare two jobs"));
        }
        Ok(spec)
    }

    fn item(&self, spec: &mut FieldSpec, item: &str) -> Result<(), ScheduleError> {
        if item.is_empty() {
            return Err(self.wrong("an item of the list is empty; remove the extra comma"));
        }
        if let Some(special) = self.special(item)? {
            spec.special.push(special);
            return Ok(());
        }
        let (body, step) = match item.split_once('/') {
            Some((body, step)) => (body, Some(self.step(step)?)),
            None => (item, None),
        };
        let (low, high) = self.field.bounds();
        if body == "*" {
            spec.repeats = true;
            self.walk(spec, (low, high), step.unwrap_or(1))?;
        } else if let Some(range) = body.strip_prefix('H') {
            self.hashed(spec, range, step)?;
        } else if let Some((from, to)) = body.split_once('-') {
            self.walk(spec, self.range(from, to)?, step.unwrap_or(1))?;
        } else {
            let from = self.value(body)?;
            match step {
                Some(step) => self.walk(spec, (from, high.max(from)), step)?,
                None => spec.values |= self.bit(from),
            }
        }
        spec.repeats |= step.is_some();
        Ok(())
    }

    /// Adds every `step`th value of a range.
    fn walk(&self, spec: &mut FieldSpec, (from, to): (u8, u8), step: u8) -> Result<(), ScheduleError> {
        if step > 1 && step > to - from {
            return Err(self.too_wide(from, to, step.into()));
        }
        let mut last = from;
        for value in (from..=to).step_by(step.into()) {
            spec.values |= self.bit(value);
            last = value;
        }
        let (low, high) = self.field.bounds();
        let goes_round = step > 1 && to == high;
        if goes_round && (from - low) + (high - last) + 1 != step {
            spec.uneven = Some((step, from, last));
        }
        Ok(())
    }

    /// `H`, `H(a-b)`, with or without a step: a value that the job's name decides.
    fn hashed(&self, spec: &mut FieldSpec, range: &str, step: Option<u8>) -> Result<(), ScheduleError> {
        let (low, high) = match (range, self.field) {
            // So that it exists in every month.
            ("", Field::Day) => (1, 28),
            ("", field) => field.bounds(),
            (range, _) => {
                let inner = range.strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
                let Some((from, to)) = inner.and_then(|inner| inner.split_once('-')) else {
                    return Err(self.wrong("after H write nothing, /n, or a range as in H(0-29)"));
                };
                self.range(from, to)?
            }
        };
        let Some(job) = self.job else {
            return Err(self.wrong(
                "H is a hash of the job's name, and there is no job here; name the job, or write a number",
            ));
        };
        let choices = step.unwrap_or(high - low + 1);
        if step.is_some_and(|step| step > 1 && step > high - low) {
            return Err(self.too_wide(low, high, choices.into()));
        }
        let hash = stable(&[job.as_str().as_bytes(), self.field.name().as_bytes()]);
        // The remainder is below `choices`, a u8.
        let from = low + u8::try_from(hash % u64::from(choices)).unwrap_or(0);
        match step {
            Some(step) => {
                for value in (from..=high).step_by(step.into()) {
                    spec.values |= self.bit(value);
                }
            }
            None => spec.values |= self.bit(from),
        }
        Ok(())
    }

    fn range(&self, from: &str, to: &str) -> Result<(u8, u8), ScheduleError> {
        let (low, mut high) = (self.value(from)?, self.value(to)?);
        // FRI-SUN ends with the Sunday after the Friday.
        if self.field == Field::Weekday && to == "SUN" && low > 0 {
            high = 7;
        }
        if low > high {
            let hint = match self.field {
                Field::Weekday if high == 0 => format!("write {from}-7 to end with Sunday"),
                field => {
                    let (first, last) = field.bounds();
                    format!("write {from}-{last},{first}-{to}")
                }
            };
            return Err(self.wrong(format!("the range {from}-{to} is backwards; {hint}")));
        }
        Ok((low, high))
    }

    fn value(&self, text: &str) -> Result<u8, ScheduleError> {
        if let Some(value) = self.field.named(text) {
            return Ok(value);
        }
        let expected = self.field.expected();
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            let what = if text.is_empty() {
                "a number is missing".into()
            } else {
                format!("{text:?} is not a value")
            };
            return Err(self.wrong(format!("{what}; {expected}")));
        }
        let (low, high) = self.field.bounds();
        let high = if self.field == Field::Weekday { 7 } else { high };
        match text.parse() {
            Ok(value) if (low..=high).contains(&value) => Ok(value),
            _ => Err(self.wrong(format!("{text} is out of range; {expected}"))),
        }
    }

    fn step(&self, text: &str) -> Result<u8, ScheduleError> {
        if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(self.wrong(format!("the step {text:?} is not a number; write for example */2")));
        }
        match text.parse::<u64>() {
            Ok(0) => Err(self.wrong("a step of 0 is not possible; use 1 or more")),
            Ok(step) if step < 128 => Ok(u8::try_from(step).unwrap_or(u8::MAX)),
            _ => {
                let (low, high) = self.field.bounds();
                Err(self.too_wide(low, high, text.parse().unwrap_or(u64::MAX)))
            }
        }
    }

    /// `L`, `LW`, `nW` of a month, `d#n` and `dL` of a weekday, spelled with numbers.
    fn special(&self, item: &str) -> Result<Option<String>, ScheduleError> {
        match self.field {
            Field::Day if item == "L" || item == "LW" => Ok(Some(item.into())),
            Field::Day if item.starts_with("L-") => Err(self.wrong(
                "days counted back from the last one are not supported; use L, or the number of a day",
            )),
            Field::Day => match item.strip_suffix('W') {
                Some(day) => Ok(Some(format!("{}W", self.value(day)?))),
                None => Ok(None),
            },
            Field::Weekday if item == "L" => {
                Err(self
                    .wrong("L needs a weekday here; write for example FRIL for the last Friday of a month"))
            }
            Field::Weekday => {
                if let Some((day, nth)) = item.split_once('#') {
                    let day = self.value(day)? % 7;
                    return match nth {
                        "1" | "2" | "3" | "4" | "5" => Ok(Some(format!("{day}#{nth}"))),
                        _ => Err(self.wrong(format!(
                            "#{nth} is not a week of a month; use #1 to #5, or {day}L for the last one"
                        ))),
                    };
                }
                match item.strip_suffix('L') {
                    Some(day) => Ok(Some(format!("{}L", self.value(day)? % 7))),
                    None => Ok(None),
                }
            }
            Field::Second | Field::Minute | Field::Hour | Field::Month => Ok(None),
        }
    }

    fn bit(&self, value: u8) -> u64 {
        1 << if self.field == Field::Weekday { value % 7 } else { value }
    }

    fn too_wide(&self, from: u8, to: u8, step: u64) -> ScheduleError {
        let hint = match self.field {
            Field::Second => format!("; to fire every {step} seconds, write every = \"{step}s\""),
            Field::Minute => format!("; to fire every {step} minutes, write every = \"{step}m\""),
            Field::Hour => format!("; to fire every {step} hours, write every = \"{step}h\""),
            Field::Day | Field::Month | Field::Weekday => String::new(),
        };
        self.wrong(format!("a step of {step} is longer than the range {from} to {to}{hint}"))
    }

    fn wrong(&self, what: impl std::fmt::Display) -> ScheduleError {
        ScheduleError::new(format!("{} field {:?}: {what}", self.field.name(), self.text))
    }
}
