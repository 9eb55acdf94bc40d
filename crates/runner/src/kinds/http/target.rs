//! Where a request goes.

use std::fmt;

use hyper::Uri;
use hyper::header::HeaderValue;
use serde::de::{Deserialize, Deserializer, Error as _};
use url::{Host, Url};

use crate::config::hinted;

/// The URL of a request. Only its scheme, host and port are ever shown: the path or the query of a webhook is
/// often a secret.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Target {
    url: Url,
    /// Path and query, for the request line.
    pub(super) path: Uri,
    /// For the header `Host`.
    pub(super) authority: HeaderValue,
    /// Without the brackets of an IPv6 address.
    pub(super) host: String,
    pub(super) port: u16,
}

impl Target {
    /// Whether the connection is encrypted.
    pub(super) fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// Where a `Location` leads; only what may be shown: scheme, host and port.
    pub(super) fn origin_of(&self, location: &str) -> Option<String> {
        self.url.join(location).ok().map(|url| origin(&url))
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&origin(&self.url))
    }
}

fn origin(url: &Url) -> String {
    let port = url.port().map_or_else(String::new, |port| format!(":{port}"));
    format!("{}://{}{port}", url.scheme(), url.host_str().unwrap_or_default())
}

impl TryFrom<&str> for Target {
    type Error = String;

    /// No error text repeats any part of the URL except its scheme.
    fn try_from(text: &str) -> Result<Self, String> {
        let like = "write for example \"https://pay.example/v1/payouts\"";
        let url = Url::parse(text).map_err(|error| hinted(format!("url is not a URL: {error}"), like))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(hinted("url has a scheme that is neither http nor https", like));
        }
        if url.scheme() == "https" && !cfg!(feature = "tls") {
            return Err(hinted("this build has no https", "build the runner with its feature \"tls\""));
        }
        if !url.username().is_empty() || url.password().is_some() {
            let hint = "send it as headers = { Authorization = { env = \"NAME\" } }, which is never shown";
            return Err(hinted("url contains a user or a password", hint));
        }
        if url.fragment().is_some() {
            return Err(hinted(
                "url has a part after #, which is never sent",
                "leave it out, or write %23 for a #",
            ));
        }
        let host = match url.host() {
            Some(Host::Ipv6(address)) => address.to_string(),
            Some(host) => host.to_string(),
            None => return Err(hinted("url names no host", like)),
        };
        let port = url.port_or_known_default().filter(|port| *port != 0);
        let port = port.ok_or_else(|| hinted("url has the port 0, on which no server can listen", like))?;
        let written = url.port().map_or_else(String::new, |port| format!(":{port}"));
        let authority = format!("{}{written}", url.host_str().unwrap_or_default());
        let query = url.query().map_or_else(String::new, |query| format!("?{query}"));
        let path = format!("{}{query}", url.path()).parse();
        match (path, HeaderValue::try_from(authority)) {
            (Ok(path), Ok(authority)) => Ok(Self { url, path, authority, host, port }),
            _ => Err(hinted(
                "url contains a character that cannot be sent",
                "write it percent-encoded, such as %20 for a space",
            )),
        }
    }
}

impl<'de> Deserialize<'de> for Target {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::try_from(String::deserialize(deserializer)?.as_str()).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(text: &str) -> Target {
        Target::try_from(text).unwrap()
    }

    #[test]
    fn a_url_is_split_into_the_parts_that_a_request_needs() {
        let plain = target("http://pay.example");
        assert_eq!(
            (plain.host.as_str(), plain.port, plain.path.to_string().as_str()),
            ("pay.example", 80, "/")
        );
        assert_eq!(plain.authority, "pay.example");
        let full = target("http://[::1]:8080/v1/ä b?day=1&x={y}|z");
        assert_eq!((full.host.as_str(), full.port), ("::1", 8080));
        assert_eq!(full.authority, "[::1]:8080");
        assert_eq!(full.path.to_string(), "/v1/%C3%A4%20b?day=1&x={y}|z");
        assert_eq!(target("http://bücher.example/").host, "xn--bcher-kva.example");
    }

    #[test]
    fn a_path_and_a_query_are_never_shown() {
        assert_eq!(
            target("http://hooks.example:81/S3CRET?key=S3CRET").to_string(),
            "http://hooks.example:81"
        );
    }

    #[test]
    fn only_the_origin_of_a_redirect_is_shown() {
        let target = target("http://a.example/x");
        assert_eq!(target.origin_of("/login?token=S3CRET").unwrap(), "http://a.example");
        assert_eq!(
            target.origin_of("https://u:S3CRET@b.example:444/S3CRET").unwrap(),
            "https://b.example:444"
        );
        assert_eq!(target.origin_of("http://["), None);
    }

    #[test]
    fn what_is_not_a_url_is_refused_without_repeating_it() {
        for (text, words) in [
            ("", "not a URL"),
            ("S3CRET", "not a URL"),
            ("/S3CRET", "not a URL"),
            ("http://", "not a URL"),
            ("http://h:99999/S3CRET", "not a URL"),
            ("http://h:0/S3CRET", "port 0"),
            ("ftp://h/S3CRET", "neither http nor https"),
            ("S3CRET:x", "neither http nor https"),
            ("http://user:S3CRET@h/", "user or a password"),
            ("http://S3CRET@h/", "user or a password"),
            ("http://h/#S3CRET", "after #"),
        ] {
            let refusal = Target::try_from(text).err().unwrap_or_else(|| panic!("{text} was accepted"));
            assert!(refusal.contains(words) && !refusal.contains("S3CRET"), "{text}: {refusal}");
        }
    }

    #[cfg(not(feature = "tls"))]
    #[test]
    fn https_is_refused_where_it_is_not_built_in() {
        assert!(Target::try_from("https://h/").err().unwrap().contains("feature \"tls\""));
    }
}
