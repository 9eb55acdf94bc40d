//! `[log]`

use config::Value;
use tracing::level_filters::LevelFilter;

use super::row::{Key, keys};
use crate::config::settings::LogFormat;
use crate::config::value::{BadValue, text, word};

keys! { "log":
    FORMAT: LogFormat = Key::new("format", "one of", |value, _| word(value),
        "`text` for people, `json` for programs: one object per line.")
        .default("\"text\"")
        .refuses("other words");

    LEVEL: LevelFilter = Key::new("level", "one of", |value, _| level(value),
        "The lowest level that is logged: `trace`, `debug`, `info`, `warn`, `error` or `off`.")
        .default("\"info\"")
        .refuses("other words");
}

fn level(value: &Value) -> Result<LevelFilter, BadValue> {
    const LEVELS: [(&str, LevelFilter); 6] = [
        ("trace", LevelFilter::TRACE),
        ("debug", LevelFilter::DEBUG),
        ("info", LevelFilter::INFO),
        ("warn", LevelFilter::WARN),
        ("error", LevelFilter::ERROR),
        ("off", LevelFilter::OFF),
    ];
    let word = text(value)?;
    match LEVELS.iter().find(|(name, _)| *name == word) {
        Some((_, level)) => Ok(*level),
        None => Err(BadValue::unknown_word(word, &LEVELS.map(|(name, _)| name))),
    }
}
