//! Reads one value as the type that its key asks for, without guessing.

use std::str::FromStr;

use config::{Map, Value, ValueKind};

use super::diagnose::hints;
use crate::firing::UnknownWord;

/// Keys and their values.
pub(crate) type Table = Map<String, Value>;

/// The origin of a value that the file sets.
pub(crate) const FROM_FILE: &str = "file";

/// The origin that `config` gives to a value of the environment.
pub(crate) const FROM_ENVIRONMENT: &str = "the environment";

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BadValue {
    /// Steps down from the value to the part that is wrong.
    pub(crate) within: Vec<String>,
    /// Whether the key there is wrong, and not its value.
    pub(crate) is_key: bool,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl BadValue {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { within: Vec::new(), is_key: false, message: message.into(), hint: None }
    }

    pub(crate) fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn maybe_hint(self, hint: Option<String>) -> Self {
        Self { hint, ..self }
    }

    /// A key below the value that is not among `known`.
    pub(crate) fn unknown_key(key: &str, known: &[&str]) -> Self {
        let hint = match (hints::nearest(key, known.iter().copied()), hints::foreign_key(key)) {
            (Some(nearest), _) => format!("did you mean {nearest}?"),
            (None, Some(ours)) => format!("write {ours}"),
            (None, None) => format!("the keys are {}", known.join(", ")),
        };
        Self { is_key: true, ..Self::new(format!("unknown key {key:?}")).hint(hint).under(key) }
    }

    /// A word that is not among `known`.
    pub(crate) fn unknown_word(word: &str, known: &[&str]) -> Self {
        let hint = hints::foreign_word(word, known)
            .or_else(|| hints::nearest(word, known.iter().copied()))
            .map(|nearest| format!("did you mean \"{nearest}\"?"));
        Self::new(format!("{word:?} is not one of {}", known.join(", "))).maybe_hint(hint)
    }

    /// The same fault, seen from one step above.
    pub(crate) fn under(mut self, segment: &str) -> Self {
        self.within.insert(0, segment.to_owned());
        self
    }
}

/// Whether the file or the environment set the value. A default has no origin, and `config` drops the
/// origin of a table when it puts layers together: what is in the table still has its own.
pub(crate) fn is_written(value: &Value) -> bool {
    let within = match &value.kind {
        ValueKind::Table(table) => table.values().any(is_written),
        _ => false,
    };
    within || value.origin().is_some()
}

/// The text of a value from the environment. Variables are text only: a number or a boolean in one is
/// read from its text.
fn variable_text(value: &Value) -> Option<&str> {
    match &value.kind {
        ValueKind::String(text) if value.origin() == Some(FROM_ENVIRONMENT) => Some(text.trim()),
        _ => None,
    }
}

/// The type of a value in words. Never the value itself: it may be a secret in the wrong place.
pub(crate) fn describe(value: &Value) -> &'static str {
    match &value.kind {
        ValueKind::Nil => "nothing",
        ValueKind::Boolean(_) => "a boolean",
        ValueKind::I64(_) | ValueKind::I128(_) | ValueKind::U64(_) | ValueKind::U128(_) => "a whole number",
        ValueKind::Float(_) => "a number",
        ValueKind::String(_) => "text",
        ValueKind::Table(_) => "a table",
        ValueKind::Array(_) => "a list",
    }
}

/// Text.
pub(crate) fn text(value: &Value) -> Result<&str, BadValue> {
    match &value.kind {
        ValueKind::String(text) => Ok(text),
        _ => Err(BadValue::new(format!("expected text in quotes, found {}", describe(value)))),
    }
}

/// A table.
pub(crate) fn table(value: &Value) -> Result<&Table, BadValue> {
    match &value.kind {
        ValueKind::Table(table) => Ok(table),
        _ => Err(BadValue::new(format!("expected a table, found {}", describe(value)))),
    }
}

/// `true` or `false`.
pub(crate) fn boolean(value: &Value) -> Result<bool, BadValue> {
    match (&value.kind, variable_text(value)) {
        (ValueKind::Boolean(boolean), _) => Ok(*boolean),
        (_, Some("true")) => Ok(true),
        (_, Some("false")) => Ok(false),
        _ => Err(BadValue::new(format!("expected a boolean (true or false), found {}", describe(value)))),
    }
}

/// A whole number from `least` to `most`.
pub(crate) fn whole(value: &Value, least: u32, most: u32) -> Result<u32, BadValue> {
    let number = match (&value.kind, variable_text(value)) {
        (ValueKind::I64(number), _) => Some(*number),
        (_, Some(text)) => text.parse().ok(),
        _ => None,
    };
    let Some(number) = number else {
        return Err(BadValue::new(format!("expected a whole number, found {}", describe(value))));
    };
    match u32::try_from(number) {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(BadValue::new(format!("expected a whole number from {least} to {most}, found {number}"))),
    }
}

/// A number from `least` to `most`.
pub(crate) fn number(value: &Value, least: f64, most: f64) -> Result<f64, BadValue> {
    let number = match (&value.kind, variable_text(value)) {
        (ValueKind::Float(number), _) => Some(*number),
        (ValueKind::I64(number), _) => i32::try_from(*number).ok().map(f64::from),
        (_, Some(text)) => text.parse().ok(),
        _ => None,
    };
    match number {
        Some(number) if (least..=most).contains(&number) => Ok(number),
        Some(number) => {
            Err(BadValue::new(format!("expected a number from {least} to {most}, found {number}")))
        }
        None => Err(BadValue::new(format!("expected a number, found {}", describe(value)))),
    }
}

/// One of the words of `T`.
pub(crate) fn word<T: FromStr<Err = UnknownWord>>(value: &Value) -> Result<T, BadValue> {
    text(value)?.parse().map_err(|unknown: UnknownWord| BadValue::unknown_word(&unknown.found, unknown.known))
}
