//! The headers of a request: the job's own, and those that name its run.

use std::collections::BTreeMap;
use std::fmt;

use hyper::header::{
    ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, InvalidHeaderValue, USER_AGENT,
};
use serde::de::{self, Deserialize, Deserializer, Error as _, Visitor};

use super::trace;
use crate::config::hinted;
use crate::firing;
use crate::job::JobContext;

/// Headers of every request, unless its job sets them.
const DEFAULTS: [(HeaderName, HeaderValue); 2] = [
    (ACCEPT, HeaderValue::from_static("*/*")),
    (USER_AGENT, HeaderValue::from_static(concat!("runner/", env!("CARGO_PKG_VERSION")))),
];

/// Names of the run's own headers begin with this.
const OURS: &str = "x-runner-";

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

const ATTEMPT: HeaderName = HeaderName::from_static("x-runner-attempt");
const FENCE: HeaderName = HeaderName::from_static("x-runner-fence");
const JOB: HeaderName = HeaderName::from_static("x-runner-job");
const ORIGIN: HeaderName = HeaderName::from_static("x-runner-origin");
const SCHEDULED_AT: HeaderName = HeaderName::from_static("x-runner-scheduled-at");
const SHARD: HeaderName = HeaderName::from_static("x-runner-shard");
const SHARDS: HeaderName = HeaderName::from_static("x-runner-shards");

/// Headers of the connection. The runner sets them, never a job.
const OF_CONNECTION: [&str; 10] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// The headers that jobs.toml gives a job.
#[derive(Clone, Debug, Default)]
pub(super) struct Headers(HeaderMap);

impl Headers {
    /// All headers of one run's request, except those of the connection.
    ///
    /// # Errors
    /// [`InvalidHeaderValue`] where the idempotency key of the firing is not valid in a header.
    pub(super) fn of_run(
        &self,
        media_type: Option<&HeaderValue>,
        ctx: &JobContext,
    ) -> Result<HeaderMap, InvalidHeaderValue> {
        let mut headers = HeaderMap::new();
        headers.extend(DEFAULTS);
        headers.extend(media_type.map(|media_type| (CONTENT_TYPE, media_type.clone())));
        headers.extend(self.0.clone());
        let key = ctx.idempotency_key();
        for (name, value) in [
            (TRACEPARENT, trace::parent(&key, ctx.fence())),
            (IDEMPOTENCY_KEY, key),
            (JOB, ctx.job().to_owned()),
            (SCHEDULED_AT, firing::instant(ctx.scheduled_at())),
            (ATTEMPT, ctx.attempt().to_string()),
            (FENCE, ctx.fence().to_string()),
            (SHARD, ctx.shard().to_string()),
            (SHARDS, ctx.shards().to_string()),
            (ORIGIN, ctx.origin().to_string()),
        ] {
            headers.insert(name, HeaderValue::try_from(value)?);
        }
        Ok(headers)
    }

    /// The names only: values may be secrets.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(HeaderName::as_str)
    }
}

impl<'de> Deserialize<'de> for Headers {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut headers = HeaderMap::new();
        for (written, Text(value)) in BTreeMap::<String, Text>::deserialize(deserializer)? {
            let name = name(&written).map_err(D::Error::custom)?;
            if headers.insert(name, value).is_some() {
                return Err(D::Error::custom(format_args!("the header {written:?} is there twice")));
            }
        }
        Ok(Self(headers))
    }
}

fn name(written: &str) -> Result<HeaderName, String> {
    let name: HeaderName = written.parse().map_err(|_| format!("{written:?} is not a valid header name"))?;
    if name.as_str().starts_with(OURS) || name == IDEMPOTENCY_KEY || name == TRACEPARENT {
        return Err(hinted(
            format_args!("the header {written} is set by the runner itself"),
            "leave it out: it tells the receiver which run this is",
        ));
    }
    if OF_CONNECTION.contains(&name.as_str()) {
        return Err(hinted(
            format_args!("the header {written} belongs to the connection, and the runner sets it"),
            "leave it out",
        ));
    }
    Ok(name)
}

/// A header's value. Debug never shows it.
struct Text(HeaderValue);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, { env = \"NAME\" } or { file = \"/path\" }")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        let refused =
            "a header's value may hold visible ASCII, spaces and tabs: no line breaks, no other characters";
        let plain = text.bytes().all(|byte| byte == b'\t' || (b' '..=b'~').contains(&byte));
        let value = HeaderValue::from_str(text).ok().filter(|_| plain);
        let mut value = value.ok_or_else(|| E::custom(refused))?;
        value.set_sensitive(true);
        Ok(Text(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Headers, String> {
        toml::from_str(text).map_err(|error| error.message().to_owned())
    }

    #[test]
    fn values_are_read_and_never_shown() {
        let headers = read("Authorization = 'Bearer hunter2'\nX-Empty = ''").unwrap();
        assert_eq!(headers.0["authorization"], "Bearer hunter2");
        assert!(!format!("{headers:?}").contains("hunter2"), "{headers:?}");
        assert_eq!(headers.names().collect::<Vec<_>>().len(), 2);
    }

    #[test]
    fn what_cannot_be_sent_is_refused_without_repeating_a_value() {
        for (text, words) in [
            ("'a b' = 'x'", "\"a b\" is not a valid header name"),
            ("'' = 'x'", "is not a valid header name"),
            ("A = 'S3CRET\\nB: C'".replace('\'', "\"").as_str(), "no line breaks"),
            ("A = 'S3CRETé'", "visible ASCII"),
            ("A = 5", "expected text, { env"),
            ("A = ['S3CRET']", "expected text, { env"),
            ("a = 'x'\nA = 'S3CRET'", "is there twice"),
            ("Idempotency-Key = 'x'", "set by the runner itself"),
            ("X-Runner-Fence = 'x'", "set by the runner itself"),
            ("x-runner-anything = 'x'", "set by the runner itself"),
            ("Traceparent = 'x'", "set by the runner itself"),
            ("Host = 'x'", "belongs to the connection"),
            ("Content-Length = '1'", "belongs to the connection"),
            ("Transfer-Encoding = 'chunked'", "belongs to the connection"),
        ] {
            let refusal = read(text).unwrap_err();
            assert!(refusal.contains(words) && !refusal.contains("S3CRET"), "{text}: {refusal}");
        }
    }
}
