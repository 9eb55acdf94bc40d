//! Durations as text, read and shown: `30s`, `1h 30m`. The one parser of the product for them.

use std::time::Duration;

/// The longest duration that is accepted, so that no sum of settings overflows a timestamp.
const LONGEST: Duration = Duration::from_secs(3650 * 24 * 60 * 60);

/// The accepted units. `humantime` knows more: it reads `M` as a month, which is too easily written
/// for `m`, a minute.
const UNITS: [&str; 6] = ["ms", "s", "m", "h", "d", "w"];

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct InvalidDuration {
    /// What is wrong.
    pub(crate) message: String,
    /// What to write instead, where that is known.
    pub(crate) hint: Option<String>,
}

impl InvalidDuration {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// For a number that has no unit.
    pub(crate) fn without_unit(number: &str) -> Self {
        let number = number.trim_start_matches('-');
        Self::new("a duration needs a unit").hint(format!("write \"{number}s\" for {number} seconds"))
    }
}

/// Reads a duration: `30s`, `1h 30m`, `250ms`.
pub(crate) fn parse(text: &str) -> Result<Duration, InvalidDuration> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        return Err(InvalidDuration::new("the duration is empty").hint("write for example \"30s\""));
    }
    if trimmed.starts_with('-') {
        return Err(InvalidDuration::new(format!("a duration cannot be negative, found {text:?}")));
    }
    if trimmed.parse::<f64>().is_ok() {
        return Err(InvalidDuration::without_unit(trimmed));
    }
    for unit in trimmed.split(|c: char| c.is_ascii_digit() || c == '.' || c.is_whitespace()) {
        if !unit.is_empty() && !UNITS.contains(&unit) {
            return Err(unknown_unit(text, unit));
        }
    }
    let duration = humantime::parse_duration(trimmed).map_err(|_| {
        InvalidDuration::new(format!("{text:?} is not a duration")).hint("write for example \"1h 30m\"")
    })?;
    if duration.subsec_nanos() % 1_000_000 != 0 {
        return Err(InvalidDuration::new(format!("{text:?} is finer than a millisecond")));
    }
    if duration > LONGEST {
        return Err(InvalidDuration::new(format!("{text:?} is longer than ten years")));
    }
    Ok(duration)
}

/// Shows a duration as it could be written in jobs.toml: `1m 30s`. Fractions of a millisecond are left out.
#[must_use]
pub fn show(duration: Duration) -> String {
    let mut rest = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let mut parts = Vec::new();
    for (unit, size) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if rest / size > 0 {
            parts.push(format!("{}{unit}", rest / size));
            rest %= size;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

fn unknown_unit(text: &str, unit: &str) -> InvalidDuration {
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
        None => format!("the units are {}", UNITS.join(", ")),
    };
    InvalidDuration::new(format!("unknown unit {unit:?} in the duration {text:?}")).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(parse(text), Ok(Duration::from_millis(millis)), "{text}");
        }
    }

    #[test]
    fn everything_else_is_refused() {
        for text in [
            "", " ", "10", "0", "1.5", "-5s", "4hrs", "5M", "1y", "s", "3 apples", "1e3s", "1us", "0.5ms",
            "99999d",
        ] {
            assert!(parse(text).is_err(), "{text:?} was accepted");
        }
    }

    #[test]
    fn a_hint_says_what_to_write() {
        let hint = |text| parse(text).err().and_then(|invalid| invalid.hint);
        assert_eq!(hint("10").as_deref(), Some("write \"10s\" for 10 seconds"));
        assert_eq!(hint("4hrs").as_deref(), Some("write \"4h\""));
        assert_eq!(hint("5M").as_deref(), Some("the units are ms, s, m, h, d, w"));
    }

    #[test]
    fn what_is_shown_is_read_back() {
        for text in ["250ms", "30s", "1m 30s", "54s 695ms", "30d", "1d 2h 3m 4s 5ms"] {
            assert_eq!(show(parse(text).expect("valid")), text);
        }
        assert_eq!(show(Duration::ZERO), "0s");
    }
}
