//! The URL of a Redis server.

use redis::{Client, ConnectionInfo, IntoConnectionInfo, RedisError};
use url::Url;

use crate::InvalidUrl;

/// What to write instead of a URL that cannot be used.
const EXAMPLE: &str = "write for example redis://127.0.0.1:6379/0";

/// Whether the client would take the URL. Asks no server and needs no runtime.
pub(crate) fn check_url(url: &str) -> Result<(), InvalidUrl> {
    Client::open(connection_info(url)?)?;
    Ok(())
}

/// Where the server is, and who we are there.
pub(super) fn connection_info(url: &str) -> Result<ConnectionInfo, InvalidUrl> {
    // Parsed here first: of any mistake the client would only say that the URL "did not parse".
    let url = Url::parse(url).map_err(|error| InvalidUrl::new(error.to_string(), EXAMPLE))?;
    let is_socket = url.scheme().ends_with("unix");
    if is_socket && (url.host().is_some() || url.path().trim_matches('/').is_empty()) {
        let advice = "write for example redis+unix:///run/redis.sock";
        return Err(InvalidUrl::new("a Unix socket needs an absolute path", advice));
    }
    if !is_socket && url.host().is_none() {
        return Err(InvalidUrl::new("it names no host", EXAMPLE));
    }
    if url.port() == Some(0) {
        return Err(InvalidUrl::new("its port must be from 1 to 65535", EXAMPLE));
    }
    let info = url.into_connection_info()?;
    if info.redis_settings().db() < 0 {
        return Err(InvalidUrl::new("its database must not be negative", EXAMPLE));
    }
    Ok(info)
}

impl From<RedisError> for InvalidUrl {
    fn from(error: RedisError) -> Self {
        // The text after the dash may quote the URL.
        let text = error.to_string();
        Self::new(text.split(" - ").next().unwrap_or_default().to_lowercase(), EXAMPLE)
    }
}

#[cfg(test)]
mod tests {
    use super::super::RedisBackend;
    use super::*;
    use crate::OpenOptions;

    fn open(url: &str) -> Result<RedisBackend, InvalidUrl> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        RedisBackend::new(url, OpenOptions::new(runtime.handle().clone(), runtime.handle().clone()))
    }

    #[test]
    fn every_form_of_a_url_that_the_client_knows_is_taken() {
        for url in [
            "redis://127.0.0.1:6379/0",
            "redis://user:pass@host",
            "redis://[::1]:6380/",
            "redis://host:1?protocol=resp3",
            "valkey://host",
            "redis+unix:///run/redis.sock?db=1",
            "valkey+unix:///run/valkey.sock",
            "unix:///run/redis.sock",
        ] {
            assert_eq!(check_url(url), Ok(()), "{url}");
        }
    }

    #[test]
    fn a_url_that_no_server_can_have_is_refused_in_words() {
        for (url, problem) in [
            ("redis://", "it names no host"),
            ("redis:///0", "it names no host"),
            ("redis://host:99999", "invalid port number"),
            ("redis://host:0", "its port must be from 1 to 65535"),
            ("redis://[::1", "invalid IPv6 address"),
            ("redis://0.0.0.0", "cannot connect to a wildcard address (0.0.0.0 or ::)"),
            ("redis://host/db", "invalid database number"),
            ("redis://host/-1", "its database must not be negative"),
            ("redis://host?protocol=resp9", "invalid protocol version"),
            ("unix://relative/path", "a Unix socket needs an absolute path"),
            ("unix:///", "a Unix socket needs an absolute path"),
            ("redis+unix:///run/redis.sock?db=one", "invalid database number"),
        ] {
            let error = check_url(url).map(|()| url).unwrap_err();
            assert_eq!(error.problem(), problem, "{url}");
            assert_eq!(open(url).unwrap_err(), error, "{url}");
            assert!(error.advice().starts_with("write for example redis"), "{error}");
        }
    }

    #[test]
    fn neither_debug_nor_an_invalid_url_shows_the_password() {
        let backend = open("redis://user:hunter2@localhost:6379/0").unwrap();
        assert_eq!(format!("{backend:?}"), r#"RedisBackend { server: "localhost:6379", .. }"#);
        for url in [
            "redis://user:hunter2@localhost:6379/nodb",
            "redis://user:hunter2@localhost:99999/0",
            "redis://user:hunter2@localhost/0?protocol=hunter2",
            "redis://hunter2:hunter2@",
            "redis://user:hunter2@0.0.0.0",
            "unix://hunter2",
            "unix:///?pass=hunter2",
            "postgres://user:hunter2@localhost/0",
            "rediss://user:hunter2@localhost/0#hunter2",
            "hunter2",
        ] {
            for error in
                [open(url).map(|_| url).unwrap_err(), crate::check_url(url).map(|()| url).unwrap_err()]
            {
                assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
            }
        }
    }
}
