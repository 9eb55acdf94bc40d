//! Durations: text with units, and nothing else.

use std::time::Duration;

use config::{Value, ValueKind};

use super::params::hinted;
use super::value::{Fault, describe};

/// No setting is longer: it keeps every sum of them far from what a timestamp can hold.
const LONGEST: Duration = Duration::from_secs(3650 * 24 * 60 * 60);

/// The units that are read. Fewer than the parser behind knows: it takes `M` for a month beside `m`
/// for a minute, which is too small a slip for so large a difference.
const UNITS: [&str; 6] = ["ms", "s", "m", "h", "d", "w"];

/// A duration as text with units: `30s`, `1h 30m`, `250ms`.
pub(crate) fn duration(value: &Value) -> Result<Duration, Fault> {
    match &value.kind {
        ValueKind::String(text) => parse(text),
        ValueKind::I64(number) => Err(without_unit(&number.to_string())),
        ValueKind::Float(number) => Err(without_unit(&number.to_string())),
        _ => Err(Fault::new(format!("expected a duration such as \"30s\", found {}", describe(value)))),
    }
}

/// A duration of at least `least`; `why` says what shorter ones would break.
pub(crate) fn at_least(value: &Value, least: Duration, why: &str) -> Result<Duration, Fault> {
    let duration = duration(value)?;
    if duration < least {
        return Err(Fault::new(format!("{} is too short: {why}", show(duration)))
            .hint(format!("write \"{}\" or more", show(least))));
    }
    Ok(duration)
}

/// As it could be written in the file: `1m 30s`.
#[must_use]
pub fn show(duration: Duration) -> String {
    // Whole milliseconds: the rest is an artefact of thirds and hundredths.
    let millis = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut rest = millis;
    let mut parts = Vec::new();
    for (unit, size) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if rest / size > 0 {
            parts.push(format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

/// [`parse`] for params: its words as serde carries them.
pub(crate) fn param(text: &str) -> Result<Duration, String> {
    parse(text).map_err(|fault| match fault.hint {
        Some(hint) => hinted(fault.message, hint),
        None => fault.message,
    })
}

fn without_unit(number: &str) -> Fault {
    let number = number.trim_start_matches('-');
    Fault::new("a duration needs a unit").hint(format!("write \"{number}s\" for {number} seconds"))
}

fn parse(text: &str) -> Result<Duration, Fault> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(Fault::new("a duration is missing between the quotes").hint("write for example \"30s\""));
    }
    if trimmed.starts_with('-') {
        return Err(Fault::new(format!("a duration cannot be negative, found {text:?}")));
    }
    if trimmed.parse::<f64>().is_ok() {
        return Err(without_unit(trimmed));
    }
    for unit in trimmed.split(|c: char| c.is_ascii_digit() || c == '.' || c.is_whitespace()) {
        if !unit.is_empty() && !UNITS.contains(&unit) {
            return Err(unknown_unit(text, unit));
        }
    }
    let duration = humantime::parse_duration(trimmed).map_err(|_| {
        Fault::new(format!("{text:?} is not a duration")).hint("write for example \"1h 30m\"")
    })?;
    if duration.subsec_nanos() % 1_000_000 != 0 {
        return Err(Fault::new(format!("{text:?} is finer than a millisecond")));
    }
    if duration > LONGEST {
        return Err(Fault::new(format!("{text:?} is longer than ten years")));
    }
    Ok(duration)
}

fn unknown_unit(text: &str, unit: &str) -> Fault {
    let meant = match unit.to_ascii_lowercase().as_str() {
        "sec" | "secs" | "second" | "seconds" => Some("s"),
        "min" | "mins" | "minute" | "minutes" => Some("m"),
        "hr" | "hrs" | "hour" | "hours" => Some("h"),
        "day" | "days" => Some("d"),
        "wk" | "wks" | "week" | "weeks" => Some("w"),
        "millis" | "msec" | "msecs" => Some("ms"),
        _ => None,
    };
    let hint = match meant {
        Some(meant) => format!("write \"{}\"", text.trim().replace(unit, meant)),
        None => format!("units are {}", UNITS.join(", ")),
    };
    Fault::new(format!("unknown unit {unit:?} in the duration {text:?}")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Duration, Fault> {
        duration(&Value::new(None, text))
    }

    #[test]
    fn units_are_read_alone_and_together() {
        for (text, millis) in [
            ("250ms", 250),
            ("30s", 30_000),
            ("1.5s", 1_500),
            ("2m", 120_000),
            ("1h 30m", 5_400_000),
            ("1h30m", 5_400_000),
            ("30d", 2_592_000_000),
            ("1w", 604_800_000),
            ("0s", 0),
        ] {
            assert_eq!(read(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "", " ", "10", "0", "1.5", "-5s", "4hrs", "5M", "1y", "s", "3 apples", "1e3s", "1us", "0.5ms",
            "99999d",
        ] {
            assert!(read(text).is_err(), "{text:?} was accepted");
        }
        assert!(duration(&Value::new(None, 30_i64)).is_err());
    }

    #[test]
    fn a_hint_says_how_it_would_do() {
        let hint = |text| read(text).err().and_then(|fault| fault.hint);
        assert_eq!(hint("10").as_deref(), Some("write \"10s\" for 10 seconds"));
        assert_eq!(hint("4hrs").as_deref(), Some("write \"4h\""));
        assert_eq!(hint("5M").as_deref(), Some("units are ms, s, m, h, d, w"));
    }

    #[test]
    fn what_is_shown_is_read_back() {
        for text in ["250ms", "30s", "1m 30s", "54s 695ms", "30d", "1d 2h 3m 4s 5ms"] {
            assert_eq!(show(read(text).expect("valid")), text);
        }
        assert_eq!(show(Duration::ZERO), "0s");
    }
}
