//! One row of the table: a key and all that is known of it.

use config::{Value, ValueKind};

use crate::config::diagnose::Exposure;
use crate::config::settings::JobSpec;
use crate::config::value::BadValue;
use crate::config::walk::Walk;

/// The keys of one table of the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keys {
    /// The section's name, or the name of the key that holds the table.
    pub(crate) name: &'static str,
    /// In the order in which messages and the page list them.
    pub(crate) rows: &'static [Row],
}

impl Keys {
    /// The row of a key.
    pub(crate) fn row(&self, key: &str) -> Option<&'static Row> {
        self.rows.iter().find(|row| row.name == key)
    }

    /// The names of all keys.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        self.rows.iter().map(|row| row.name).collect()
    }
}

/// A key, and how its value is read as a `T`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<T> {
    pub(crate) row: Row,
    pub(crate) parse: Parse<T>,
}

/// Reads a value, or says what is wrong with it.
pub(crate) type Parse<T> = fn(&Value, &Walk<'_>) -> Result<T, BadValue>;

/// What is known of a key, apart from how its value is read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// As the file writes it.
    pub(crate) name: &'static str,
    /// The type of its value, in the words of the page.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the test that compares the page with the table reads it")
    )]
    pub(crate) takes: &'static str,
    /// What holds when nobody sets it.
    pub(crate) default: DefaultValue,
    /// Whether a message may quote its value.
    pub(crate) exposure: Exposure,
    /// What of it the product can do.
    pub(crate) built: Built,
    /// Only for keys of a job: its name in the JSON of `check`, and what stands there.
    pub(crate) json: Option<(&'static str, ShowInJson)>,
    /// What it is for. Markdown, one line, with links that start in docs/.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "the test that compares the page with the table reads it")
    )]
    pub(crate) meaning: &'static str,
    /// Which values are refused. As `meaning`.
    pub(crate) refuses: &'static str,
}

/// The value that a loaded job has for a key.
pub(crate) type ShowInJson = fn(&JobSpec) -> serde_json::Value;

/// What holds when nobody sets a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DefaultValue {
    /// This value, written as in the file.
    Toml(&'static str),
    /// No fixed value; the words are those of the page.
    Words(
        #[cfg_attr(
            not(test),
            expect(dead_code, reason = "the test that compares the page with the table reads it")
        )]
        &'static str,
    ),
}

/// What of a key the product can do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Built {
    /// Everything.
    All,
    /// These values only.
    Only(&'static [&'static str]),
    /// Nothing, for this reason.
    Nothing(&'static str),
}

impl<T> Key<T> {
    /// A key without a default, whose value may be quoted.
    pub(crate) const fn new(
        name: &'static str,
        takes: &'static str,
        parse: Parse<T>,
        meaning: &'static str,
    ) -> Self {
        let row = Row {
            name,
            takes,
            default: DefaultValue::Words(""),
            exposure: Exposure::Always,
            built: Built::All,
            json: None,
            meaning,
            refuses: "",
        };
        Self { row, parse }
    }

    /// The same with a default, written as in the file.
    pub(crate) const fn default(mut self, toml: &'static str) -> Self {
        self.row.default = DefaultValue::Toml(toml);
        self
    }

    /// The same without a fixed default; the page says these words.
    pub(crate) const fn default_in_words(mut self, words: &'static str) -> Self {
        self.row.default = DefaultValue::Words(words);
        self
    }

    /// The same with another rule for quoting its value.
    pub(crate) const fn exposed(mut self, exposure: Exposure) -> Self {
        self.row.exposure = exposure;
        self
    }

    /// The same with words on what is refused.
    pub(crate) const fn refuses(mut self, words: &'static str) -> Self {
        self.row.refuses = words;
        self
    }

    /// The same where not everything is built.
    pub(crate) const fn built(mut self, built: Built) -> Self {
        self.row.built = built;
        self
    }

    /// The same with its place in the JSON of `check`.
    pub(crate) const fn json(mut self, name: &'static str, show: ShowInJson) -> Self {
        self.row.json = Some((name, show));
        self
    }

    /// The key's name.
    pub(crate) const fn name(&self) -> &'static str {
        self.row.name
    }
}

impl Row {
    /// Why a value that could be read is refused all the same; `None` when it is built. `dotted` is
    /// the whole path of the key.
    pub(crate) fn refusal(&self, dotted: &str, value: &Value) -> Option<BadValue> {
        let built = match self.built {
            Built::All => return None,
            Built::Nothing(why) => {
                return Some(BadValue::new(format!("{dotted} is not built yet: {why}")).hint("leave it out"));
            }
            Built::Only(built) => built,
        };
        let (plain, written) = match &value.kind {
            ValueKind::String(text) => (text.clone(), format!("{text:?}")),
            other => (other.to_string(), other.to_string()),
        };
        if built.contains(&plain.trim()) {
            return None;
        }
        let hint = format!("leave it out, or write {}", built.join(" or "));
        Some(BadValue::new(format!("{} = {written} is not built yet", self.name)).hint(hint))
    }
}

/// Declares the keys of one table: each as a constant, and all of them as `KEYS`.
macro_rules! keys {
    ($name:literal: $($key:ident: $type:ty = $made:expr;)+) => {
        $(pub(crate) const $key: $crate::config::keys::Key<$type> = $made;)+

        /// All keys of this table.
        pub(crate) const KEYS: $crate::config::keys::Keys =
            $crate::config::keys::Keys { name: $name, rows: &[$($key.row),+] };
    };
}
pub(crate) use keys;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_not_built_is_refused_with_the_reason() {
        let row = crate::config::keys::admin::KEYS.row("token").expect("the row");
        let fault = row.refusal("admin.token", &Value::new(None, "x")).expect("a refusal");
        assert!(fault.message.starts_with("admin.token is not built yet: "), "{fault:?}");
    }

    #[test]
    fn a_built_value_passes_and_another_is_named() {
        let refusal = |key: &str, value: Value| {
            let row = crate::config::keys::job::KEYS.row(key).expect("the row");
            row.refusal(key, &value)
        };
        assert_eq!(refusal("overlap", Value::new(None, "skip")), None);
        assert_eq!(refusal("timeout", Value::new(None, "1m")), None);
        let fault = refusal("shards", Value::new(None, 7_i64)).expect("a refusal");
        assert_eq!(fault.message, "shards = 7 is not built yet");
    }
}
