//! What jobs.toml says about a request.

use std::fmt;
use std::time::Duration;

use hyper::Method;
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, de::Error as _};

use super::body::Content;
use super::expect::Expect;
use super::headers::Headers;
use super::target::Target;
use super::transport::Transport;
use crate::config::{duration_param, hinted};
use crate::kinds::size::ByteSize;

const METHODS: [Method; 7] =
    [Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

/// The `params` of a job of the kind `http`.
///
/// ```toml
/// params = { url = "https://pay.example/v1/payouts", headers = { Authorization = { env = "PAY_AUTHORIZATION" } }, body = { day = "all" } }
/// ```
#[derive(Clone, Deserialize)]
#[serde(try_from = "WrittenRequest")]
pub struct HttpParams {
    pub(super) method: Method,
    pub(super) target: Target,
    pub(super) headers: Headers,
    pub(super) body: Option<Content>,
    pub(super) expect_status: Expect,
    pub(super) timeout: Option<Duration>,
    pub(super) output_limit: ByteSize,
    pub(super) transport: Transport,
}

/// The params as they are written, before they are checked against each other.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRequest {
    #[serde(default = "post", deserialize_with = "method")]
    method: Method,
    url: Target,
    #[serde(default)]
    headers: Headers,
    #[serde(default)]
    body: Option<Content>,
    #[serde(default)]
    expect_status: Expect,
    #[serde(default, deserialize_with = "timeout")]
    timeout: Option<Duration>,
    #[serde(default = "output_limit")]
    output_limit: ByteSize,
    #[serde(default)]
    ca: Option<String>,
}

impl TryFrom<WrittenRequest> for HttpParams {
    type Error = String;

    fn try_from(written: WrittenRequest) -> Result<Self, String> {
        let WrittenRequest { method, url, headers, body, expect_status, timeout, output_limit, ca } = written;
        if body.is_some() && matches!(method, Method::GET | Method::HEAD) {
            let hint = "leave body out; or leave method out, and the request is a POST";
            return Err(hinted(format_args!("a {method} request has no body"), hint));
        }
        let transport = Transport::to(&url, ca.as_deref())?;
        Ok(Self { method, target: url, headers, body, expect_status, timeout, output_limit, transport })
    }
}

/// Without what may be a secret: path and query of the url, values of headers, the body.
impl fmt::Debug for HttpParams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpParams")
            .field("method", &self.method)
            .field("url", &format_args!("{}/…", self.target))
            .field("headers", &self.headers.names().collect::<Vec<_>>())
            .field("expect_status", &self.expect_status)
            .field("timeout", &self.timeout)
            .field("output_limit", &self.output_limit)
            .finish_non_exhaustive()
    }
}

fn post() -> Method {
    Method::POST
}

fn output_limit() -> ByteSize {
    ByteSize::kib(64)
}

fn method<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Method, D::Error> {
    let written = String::deserialize(deserializer)?;
    METHODS.into_iter().find(|method| method.as_str() == written).ok_or_else(|| {
        let known = METHODS.map(|method| method.to_string()).join(", ");
        D::Error::custom(hinted(
            format_args!("{written:?} is not a method that can be sent"),
            format_args!("the methods are {known}"),
        ))
    })
}

fn timeout<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let timeout = deserializer.deserialize_any(TimeoutVisitor)?;
    if timeout.is_zero() {
        return Err(D::Error::custom(hinted(
            "the timeout is zero, so no answer can come in time",
            "leave it out, and the run's own timeout applies",
        )));
    }
    Ok(Some(timeout))
}

struct TimeoutVisitor;

impl Visitor<'_> for TimeoutVisitor {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration such as \"30s\"")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Duration, E> {
        duration_param(text).map_err(E::custom)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<Duration, E> {
        duration_param(&number.to_string()).map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{ParamProblem, read_params};

    fn read(text: &str) -> Result<HttpParams, ParamProblem> {
        read_params(&text.parse().unwrap())
    }

    #[test]
    fn only_the_url_is_needed() {
        let params = read("url = 'http://h/'").unwrap();
        assert_eq!(params.method, Method::POST);
        assert!(params.body.is_none() && params.timeout.is_none());
        assert_eq!(params.expect_status, Expect::default());
        assert_eq!(params.output_limit.bytes(), 65_536);
    }

    #[test]
    fn every_param_is_read() {
        let params = read(
            "url = 'http://h/'\nmethod = 'PUT'\nheaders = { A = 'b' }\nbody = 'x'\nexpect_status = [200, '4xx']\n\
             timeout = '1m 30s'\noutput_limit = '1KiB'",
        )
        .unwrap();
        assert_eq!((params.method, params.timeout), (Method::PUT, Some(Duration::from_secs(90))));
        assert_eq!((params.body.unwrap().text.as_str(), params.output_limit.bytes()), ("x", 1_024));
    }

    #[test]
    fn a_bad_param_is_refused_where_it_stands_with_a_hint() {
        for (text, path, words, hint) in [
            ("", "", "url is missing", ""),
            ("url = 5", "url", "expected a string", ""),
            ("url = 'http://u:p@h/'", "url", "user or a password", "headers = { Authorization = { env"),
            ("method = 'post'", "method", "\"post\" is not a method", "GET, HEAD, POST"),
            ("method = 'CONNECT'", "method", "is not a method", "GET, HEAD, POST"),
            ("headers = { A = 5 }", "headers.A", "expected text", ""),
            ("headers = { X-Runner-Job = 'a' }", "headers", "set by the runner itself", "leave it out"),
            ("headers = ['A']", "headers", "expected a map", ""),
            ("body = true", "body", "sent as JSON", "quotes"),
            ("expect_status = 'ok'", "expect_status", "is not a status", ""),
            ("expect_status = [200, 99]", "expect_status[1]", "99 is not a status", ""),
            ("timeout = 5", "timeout", "needs a unit", "\"5s\""),
            ("timeout = '5 minutes'", "timeout", "unknown unit", "write \"5 m\""),
            ("timeout = '0s'", "timeout", "the timeout is zero", "leave it out"),
            ("timeout = true", "timeout", "a duration such as", ""),
            ("output_limit = '1GiB'", "output_limit", "is not a size", ""),
            ("method = 'GET'\nbody = 'x'", "", "a GET request has no body", "leave body out"),
            ("follow = true", "follow", "unknown key", "the keys are method, url"),
            ("header = {}", "header", "unknown key", "did you mean headers?"),
            ("ca = 'x'", "", "ca is for https", "leave it out"),
        ] {
            let text = if text.contains("url") || text.is_empty() {
                text.to_owned()
            } else {
                format!("url = 'http://h/'\n{text}")
            };
            let problem = read(&text).unwrap_err();
            assert_eq!(problem.path, path, "{text}: {problem:?}");
            assert!(problem.message.contains(words), "{text}: {problem:?}");
            assert!(problem.hint.unwrap_or_default().contains(hint), "{text}");
        }
    }

    #[test]
    fn what_may_be_a_secret_is_not_printed() {
        let text = "url = 'http://h/S3CRET?S3CRET'\nbody = 'S3CRET'\nheaders = { Authorization = 'S3CRET' }";
        let printed = format!("{:?}", read(text).unwrap());
        assert!(printed.contains("http://h/…") && printed.contains("authorization"), "{printed}");
        assert!(!printed.contains("S3CRET"), "{printed}");
    }
}
