//! `backoff`, a table among the keys of a job.

use std::time::Duration;

use super::row::{Key, keys};
use crate::config::duration::{at_least, duration};
use crate::config::value::number;

/// Settings are in whole milliseconds.
const SHORTEST_WAIT: Duration = Duration::from_millis(1);

keys! { "backoff":
    INITIAL: Duration = Key::new("initial", "duration",
        |value, _| at_least(value, SHORTEST_WAIT, "a retry without a wait is a hot loop"),
        "The wait before the second attempt.")
        .default("\"1s\"")
        .refuses("less than `1ms`");

    MAX: Duration = Key::new("max", "duration", |value, _| duration(value),
        "The longest wait.")
        .default("\"5m\"")
        .refuses("less than `initial`");

    FACTOR: f64 = Key::new("factor", "number", |value, _| number(value, 1.0, 100.0),
        "What each further wait is multiplied by.")
        .default("2.0")
        .refuses("less than 1, more than 100");
}
