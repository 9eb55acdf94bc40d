//! Reading one value as the type its key asks for, without guessing.

use config::{Map, Value, ValueKind};

use super::diagnose::hints;
use crate::firing::UnknownWord;

/// Keys and what stands under them.
pub(crate) type Table = Map<String, Value>;

/// Where a value of the file says it comes from.
pub(crate) const FROM_FILE: &str = "file";

/// Where `config` says that a value of the environment comes from.
pub(crate) const FROM_ENVIRONMENT: &str = "the environment";

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// Steps down from the value to the part that is wrong.
    pub(crate) within: Vec<String>,
    /// Whether it is the key there that is wrong, and not what it is set to.
    pub(crate) is_key: bool,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Fault {
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
            (None, Some(ours)) => format!("here it is {ours}"),
            (None, None) => format!("the keys are {}", known.join(", ")),
        };
        Self { is_key: true, ..Self::new(format!("unknown key {key:?}")).hint(hint).under(key) }
    }

    /// The same fault, seen from one step above.
    pub(crate) fn under(mut self, segment: &str) -> Self {
        self.within.insert(0, segment.to_owned());
        self
    }
}

/// Whether it was written by someone, rather than being our default.
pub(crate) fn is_written(value: &Value) -> bool {
    value.origin().is_some()
}

/// Variables are text only: a number or a truth value in one is read from its text.
fn variable_text(value: &Value) -> Option<&str> {
    match &value.kind {
        ValueKind::String(text) if value.origin() == Some(FROM_ENVIRONMENT) => Some(text.trim()),
        _ => None,
    }
}

/// The kind of a value in words. Never the value itself: it may be a secret in the wrong place.
pub(crate) fn describe(value: &Value) -> &'static str {
    match &value.kind {
        ValueKind::Nil => "nothing",
        ValueKind::Boolean(_) => "true or false",
        ValueKind::I64(_) | ValueKind::I128(_) | ValueKind::U64(_) | ValueKind::U128(_) => "a whole number",
        ValueKind::Float(_) => "a number",
        ValueKind::String(_) => "text",
        ValueKind::Table(_) => "a table",
        ValueKind::Array(_) => "a list",
    }
}

/// Text.
pub(crate) fn text(value: &Value) -> Result<&str, Fault> {
    match &value.kind {
        ValueKind::String(text) => Ok(text),
        _ => Err(Fault::new(format!("expected text in quotes, found {}", describe(value)))),
    }
}

/// A table.
pub(crate) fn table(value: &Value) -> Result<&Table, Fault> {
    match &value.kind {
        ValueKind::Table(table) => Ok(table),
        _ => Err(Fault::new(format!("expected a table, found {}", describe(value)))),
    }
}

/// `true` or `false`.
pub(crate) fn truth(value: &Value) -> Result<bool, Fault> {
    match (&value.kind, variable_text(value)) {
        (ValueKind::Boolean(truth), _) => Ok(*truth),
        (_, Some("true")) => Ok(true),
        (_, Some("false")) => Ok(false),
        _ => Err(Fault::new(format!("expected true or false, found {}", describe(value)))),
    }
}

/// A whole number from `least` to `most`.
pub(crate) fn whole(value: &Value, least: u32, most: u32) -> Result<u32, Fault> {
    let number = match (&value.kind, variable_text(value)) {
        (ValueKind::I64(number), _) => Some(*number),
        (_, Some(text)) => text.parse().ok(),
        _ => None,
    };
    let Some(number) = number else {
        return Err(Fault::new(format!("expected a whole number, found {}", describe(value))));
    };
    match u32::try_from(number) {
        Ok(number) if (least..=most).contains(&number) => Ok(number),
        _ => Err(Fault::new(format!("expected a whole number from {least} to {most}, found {number}"))),
    }
}

/// A number from `least` to `most`.
pub(crate) fn number(value: &Value, least: f64, most: f64) -> Result<f64, Fault> {
    let number = match (&value.kind, variable_text(value)) {
        (ValueKind::Float(number), _) => Some(*number),
        (ValueKind::I64(number), _) => i32::try_from(*number).ok().map(f64::from),
        (_, Some(text)) => text.parse().ok(),
        _ => None,
    };
    match number {
        Some(number) if (least..=most).contains(&number) => Ok(number),
        Some(number) => Err(Fault::new(format!("expected a number from {least} to {most}, found {number}"))),
        None => Err(Fault::new(format!("expected a number, found {}", describe(value)))),
    }
}

/// One of the words that stand for a choice.
pub(crate) fn word<T: std::str::FromStr<Err = UnknownWord>>(value: &Value) -> Result<T, Fault> {
    text(value)?.parse().map_err(|unknown: UnknownWord| {
        let choices = unknown.known.iter().copied();
        let hint = hints::foreign_word(&unknown.found, unknown.known)
            .or_else(|| hints::nearest(&unknown.found, choices))
            .map(|nearest| format!("did you mean \"{nearest}\"?"));
        Fault::new(format!("{:?} is not one of {}", unknown.found, unknown.known.join(", "))).maybe_hint(hint)
    })
}
