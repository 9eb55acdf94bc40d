//! Durations among the values of the file.

use std::time::Duration;

use config::{Value, ValueKind};

use super::params::hinted;
use super::value::{BadValue, describe};
use crate::schedule::{InvalidDuration, parse_duration, show_duration};

/// A duration as text with units: `30s`, `1h 30m`, `250ms`.
pub(crate) fn duration(value: &Value) -> Result<Duration, BadValue> {
    let read = match &value.kind {
        ValueKind::String(text) => parse_duration(text),
        ValueKind::I64(number) => Err(InvalidDuration::without_unit(&number.to_string())),
        ValueKind::Float(number) => Err(InvalidDuration::without_unit(&number.to_string())),
        _ => {
            let found = describe(value);
            return Err(BadValue::new(format!("expected a duration such as \"30s\", found {found}")));
        }
    };
    read.map_err(|invalid| BadValue::new(invalid.message).maybe_hint(invalid.hint))
}

/// A duration of at least `least`; `why` says what a shorter one would break.
pub(crate) fn at_least(value: &Value, least: Duration, why: &str) -> Result<Duration, BadValue> {
    let duration = duration(value)?;
    if duration < least {
        return Err(BadValue::new(format!("{} is too short: {why}", show_duration(duration)))
            .hint(format!("write \"{}\" or more", show_duration(least))));
    }
    Ok(duration)
}

/// A duration among the params of a kind. The error carries its hint in the one text that serde has.
pub(crate) fn duration_param(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|invalid| match invalid.hint {
        Some(hint) => hinted(invalid.message, hint),
        None => invalid.message,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_without_a_unit_is_no_duration() {
        let fault = duration(&Value::new(None, 30_i64)).expect_err("a fault");
        assert_eq!(fault.hint.as_deref(), Some("write \"30s\" for 30 seconds"));
        assert!(duration(&Value::new(None, 1.5)).is_err());
        assert!(duration(&Value::new(None, true)).is_err_and(|fault| fault.message.contains("a boolean")));
    }
}
