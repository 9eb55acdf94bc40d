//! `[runner]`

use std::sync::Arc;
use std::time::Duration;

use chrono_tz::Tz;
use config::Value;

use super::row::{Key, keys};
use crate::config::duration::duration;
use crate::config::value::{BadValue, text, whole};
use crate::config::zone::zone;

keys! { "runner":
    NAMESPACE: Arc<str> = Key::new("namespace", "text", |value, _| namespace(value),
        "The prefix of lock keys, ledger rows and idempotency keys. Each deployment needs its own: two that share one share their firings.")
        .default("\"default\"")
        .refuses("anything but letters, digits, `.`, `_` and `-`; more than 100 characters");

    TIMEZONE: Tz = Key::new("timezone", "zone", |value, _| zone(value),
        "The zone of schedules that name none.")
        .default("\"UTC\"")
        .refuses("unknown zones");

    MAX_CONCURRENT: u32 = Key::new("max_concurrent", "number", |value, _| whole(value, 1, 100_000),
        "How many runs this replica has at once, at most.")
        .default("64")
        .refuses("less than 1, more than 100000");

    SHUTDOWN_GRACE: Duration = Key::new("shutdown_grace", "duration", |value, _| duration(value),
        "How long a stop waits for runs to finish. A run that is still going then is interrupted and left to another replica.")
        .default("\"30s\"");
}

/// It stands in lock keys, in rows and in idempotency keys, where other characters have a meaning.
fn namespace(value: &Value) -> Result<Arc<str>, BadValue> {
    let name = text(value)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts_well && name.len() <= 100 && name.chars().all(allowed) {
        return Ok(name.into());
    }
    let rule =
        "a namespace has at most 100 letters, digits, '.', '_' and '-', and begins with a letter or digit";
    Err(BadValue::new(format!("{name:?} is not a namespace")).hint(rule))
}
