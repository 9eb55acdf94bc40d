//! The body of a request: text as it is written, or a table or list as JSON.

use std::fmt;

use hyper::header::HeaderValue;
use serde::de::{Deserialize, Deserializer, Error as _};
use toml::Value;

use crate::config::hinted;

/// The body of a request.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) text: String,
    /// Its `Content-Type`, unless the job's own headers set another.
    pub(super) media_type: HeaderValue,
}

/// Without the text, which may hold secrets.
impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Content").field("media_type", &self.media_type).finish_non_exhaustive()
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => {
                Ok(Self { text, media_type: HeaderValue::from_static("text/plain; charset=utf-8") })
            }
            value @ (Value::Table(_) | Value::Array(_)) => {
                let text = json(value).map_err(D::Error::custom)?.to_string();
                Ok(Self { text, media_type: HeaderValue::from_static("application/json") })
            }
            _ => Err(D::Error::custom(hinted(
                "a body is text, or a table or a list that is sent as JSON",
                "put it between quotes",
            ))),
        }
    }
}

fn json(value: Value) -> Result<serde_json::Value, String> {
    Ok(match value {
        Value::String(text) => text.into(),
        Value::Integer(number) => number.into(),
        Value::Float(number) if !number.is_finite() => {
            return Err(format!("JSON has no number {number}"));
        }
        Value::Float(number) => number.into(),
        Value::Boolean(truth) => truth.into(),
        Value::Datetime(at) => at.to_string().into(),
        Value::Array(items) => items.into_iter().map(json).collect::<Result<Vec<_>, _>>()?.into(),
        Value::Table(table) => {
            let members = table.into_iter().map(|(key, value)| json(value).map(|value| (key, value)));
            serde_json::Value::Object(members.collect::<Result<_, _>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize)]
    struct Told {
        body: Content,
    }

    fn read(text: &str) -> Result<Content, String> {
        toml::from_str::<Told>(text).map(|told| told.body).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn text_is_sent_as_it_stands() {
        let content = read("body = 'a=1&b=2'").unwrap();
        assert_eq!(
            (content.text.as_str(), content.media_type.to_str().unwrap()),
            ("a=1&b=2", "text/plain; charset=utf-8")
        );
    }

    #[test]
    fn a_table_or_a_list_is_sent_as_json() {
        let content =
            read("body = { s = 'x\"', n = 1, f = 1.5, b = true, at = 2026-06-01T00:00:00Z, l = [{}, 2] }")
                .unwrap();
        assert_eq!(content.media_type, "application/json");
        let expected = serde_json::json!({"s": "x\"", "n": 1, "f": 1.5, "b": true, "at": "2026-06-01T00:00:00Z", "l": [{}, 2]});
        assert_eq!(serde_json::from_str::<serde_json::Value>(&content.text).unwrap(), expected);
        assert_eq!(read("body = []").unwrap().text, "[]");
    }

    #[test]
    fn what_cannot_be_sent_is_refused_with_words() {
        assert!(read("body = 5").unwrap_err().contains("text, or a table or a list"));
        assert!(read("body = [nan]").unwrap_err().contains("JSON has no number"));
    }
}
