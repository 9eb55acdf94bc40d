//! Time zones by their IANA names. There is no fallback: an unknown zone is a problem.

use chrono_tz::{TZ_VARIANTS, Tz};
use config::Value;

use super::diagnose::hints;
use super::value::{BadValue, text};

/// An IANA time zone. Names are case-sensitive, as in the IANA data.
pub(crate) fn zone(value: &Value) -> Result<Tz, BadValue> {
    let name = text(value)?;
    name.parse().map_err(|_| unknown(name))
}

fn unknown(name: &str) -> BadValue {
    let message = if name.trim().is_empty() {
        "the time zone is empty".to_owned()
    } else {
        format!("unknown time zone {name:?}")
    };
    let hint = match similar(name) {
        Some(similar) => format!("did you mean \"{similar}\"?"),
        None => "write an IANA name such as \"UTC\" or \"Europe/Berlin\"".to_owned(),
    };
    BadValue::new(message).hint(hint)
}

fn similar(name: &str) -> Option<&'static str> {
    let names = || TZ_VARIANTS.iter().map(|zone| zone.name());
    let city = |full: &'static str| full.rsplit('/').next().unwrap_or(full);
    let wanted = name.trim().replace(' ', "_");
    names()
        .find(|full| full.eq_ignore_ascii_case(&wanted))
        .or_else(|| names().find(|full| city(full).eq_ignore_ascii_case(&wanted)))
        .or_else(|| hints::nearest(&wanted, names()))
        .or_else(|| {
            names().find(|full| hints::nearest(&wanted, [city(full)]).is_some() && full.contains('/'))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_iana_data_are_read_as_they_are_spelt() {
        assert_eq!(zone(&Value::new(None, "Europe/Berlin")), Ok(chrono_tz::Europe::Berlin));
        assert_eq!(zone(&Value::new(None, "UTC")), Ok(chrono_tz::UTC));
        for name in ["Europe/Berln", "", "Mars/Base", "europe/berlin", " UTC", "+02:00"] {
            assert!(zone(&Value::new(None, name)).is_err(), "{name:?} was accepted");
        }
    }

    #[test]
    fn a_misspelt_zone_is_answered_with_the_zone_that_was_meant() {
        assert_eq!(similar("Europe/Berln"), Some("Europe/Berlin"));
        assert_eq!(similar("europe/berlin"), Some("Europe/Berlin"));
        assert_eq!(similar("New York"), Some("America/New_York"));
        assert_eq!(similar("Mars/Base"), None);
    }
}
