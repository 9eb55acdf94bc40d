//! Addresses of servers. The clients that will use an address judge it; here it is told which client
//! that is, and where a relative file lies. No part of an address is ever quoted: it may be a password.

use std::path::{Path, PathBuf};

use url::Url;

use super::secret::Secret;
use super::value::BadValue;
use super::walk::Walk;

/// The schemes of PostgreSQL.
const POSTGRES: [&str; 2] = ["postgres", "postgresql"];

/// The schemes of lock servers, for whoever gives one to the ledger.
const REDIS: [&str; 4] = ["redis", "rediss", "valkey", "valkeys"];

/// The values of `sslmode` that need TLS.
const POSTGRES_TLS: [&str; 3] = ["require", "verify-ca", "verify-full"];

/// The ledger's file when no address is given.
const LEDGER_FILE: &str = "runner.db";

/// What to write as the ledger's address.
const LEDGER_EXAMPLE: &str = "write \"postgres://user@host/database\" or \"sqlite:runner.db\"";

/// Which database a ledger's address names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LedgerKind {
    /// PostgreSQL.
    Postgres,
    /// A SQLite file, for one host.
    Sqlite,
}

impl LedgerKind {
    /// The kind of an address that has been loaded.
    pub(crate) fn of(url: &Secret) -> Self {
        if url.expose().starts_with("sqlite:") { Self::Sqlite } else { Self::Postgres }
    }
}

/// Checks the address of a lock's server.
pub(crate) fn lock(url: Secret) -> Result<Secret, BadValue> {
    let scheme = url.expose().split(':').next().unwrap_or_default();
    if POSTGRES.contains(&scheme) || scheme == "sqlite" {
        return Err(BadValue::new(format!("the lock's URL has the scheme {scheme:?}"))
            .hint("that is an address for ledger.url; the lock lives in Redis"));
    }
    match lockcore::check_url(url.expose()) {
        Ok(()) => Ok(url),
        Err(invalid) => Err(BadValue::new(format!("the lock's URL cannot be used: {}", invalid.problem()))
            .hint(invalid.advice())),
    }
}

/// Checks the address of a ledger and puts a relative SQLite file beside jobs.toml.
pub(crate) fn ledger(url: Secret, walk: &Walk<'_>) -> Result<Secret, BadValue> {
    let Some((scheme, rest)) = url.expose().split_once(':') else {
        return Err(BadValue::new("the ledger's URL has no scheme").hint(LEDGER_EXAMPLE));
    };
    let url = if POSTGRES.contains(&scheme) {
        check_postgres(url.expose())?;
        url
    } else if scheme == "sqlite" {
        sqlite(rest, &walk.resolver.directory)?
    } else if REDIS.contains(&scheme) {
        return Err(BadValue::new("the ledger cannot be in Redis").hint("that is an address for lock.url"));
    } else {
        return Err(BadValue::new(format!("the ledger's URL has the scheme {:?}", shown_scheme(scheme)))
            .hint(LEDGER_EXAMPLE));
    };
    match (walk.check_ledger_url)(url.expose()) {
        Ok(()) => Ok(url),
        Err(message) => Err(BadValue::new(without_values(message, url.expose())).hint(LEDGER_EXAMPLE)),
    }
}

/// A client's words without the values of the parameters, which it may quote: the password of a user may
/// end up among them, where it has a `?` that is not percent-encoded.
fn without_values(message: String, url: &str) -> String {
    let Ok(url) = Url::parse(url) else { return message };
    url.query_pairs().filter(|(_, value)| !value.is_empty()).fold(message, |message, (_, value)| {
        let message = message.replace(&format!("{value:?}"), "***");
        if value.chars().count() > 2 { message.replace(&*value, "***") } else { message }
    })
}

/// Refuses what the client of PostgreSQL would take, and a start would then wait for in vain.
fn check_postgres(text: &str) -> Result<(), BadValue> {
    let refused = |problem: String| BadValue::new(format!("the ledger's URL {problem}")).hint(LEDGER_EXAMPLE);
    let url = Url::parse(text).map_err(|error| refused(format!("cannot be read: {error}")))?;
    if url.cannot_be_a_base() || (!url.has_host() && url.path().trim_matches('/').is_empty()) {
        return Err(refused("names no host".to_owned()));
    }
    if url.port() == Some(0) {
        return Err(refused("has the port 0".to_owned()));
    }
    match tls_mode(&url) {
        Some(mode) if !cfg!(feature = "tls") => {
            Err(BadValue::new(format!("the ledger's URL has sslmode={mode}, and this build has no TLS"))
                .hint("build the runner with its feature \"tls\""))
        }
        Some(_) | None => Ok(()),
    }
}

/// The `sslmode` of an address, if it needs TLS.
fn tls_mode(url: &Url) -> Option<&'static str> {
    let mut modes = url.query_pairs().filter(|(name, _)| matches!(&**name, "sslmode" | "ssl-mode"));
    modes.find_map(|(_, mode)| POSTGRES_TLS.into_iter().find(|known| mode.eq_ignore_ascii_case(known)))
}

/// The address of the file that is used when none is given.
pub(crate) fn default_ledger(directory: &Path) -> Secret {
    Secret::new(format!("sqlite:{}", escaped(&directory.join(LEDGER_FILE))))
}

/// The address of a SQLite file with its whole path. Whether it is one the ledger's parser says.
fn sqlite(rest: &str, directory: &Path) -> Result<Secret, BadValue> {
    let file = rest.strip_prefix("//").unwrap_or(rest);
    if file.starts_with(":memory:") {
        return Err(
            BadValue::new("a ledger in memory forgets which firings ran").hint("write \"sqlite:runner.db\"")
        );
    }
    Ok(Secret::new(match file.is_empty() || file.starts_with('/') {
        true => format!("sqlite:{file}"),
        false => format!("sqlite:{}/{file}", escaped(directory)),
    }))
}

/// A path as it stands in an address, where `?`, `#` and `%` have a meaning.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%25").replace('?', "%3F").replace('#', "%23")
}

/// The directory of a file, absolute where the system can tell.
pub(crate) fn directory_of(file: &Path) -> PathBuf {
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    absolute.parent().unwrap_or(Path::new("/")).to_owned()
}

/// A scheme that may be shown. What stands before the colon may be anything, also a password.
fn shown_scheme(scheme: &str) -> &str {
    let plain = scheme.len() <= 12 && scheme.chars().all(|c| c.is_ascii_lowercase() || c == '+');
    if plain { scheme } else { "…" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::diagnose::Findings;
    use crate::config::environment::Environment;
    use crate::config::secret::Resolver;

    /// What a file in `/etc/run ner` makes of this ledger.
    fn ledger_at(url: &str) -> Result<String, BadValue> {
        let (environment, findings) = (Environment::default(), Findings::default());
        let directory = "/etc/run ner".into();
        let walk = Walk {
            findings: &findings,
            resolver: Resolver { environment: &environment, directory, findings: &findings },
            kinds: &(&[] as &[&str]),
            kind_names: Vec::new(),
            check_ledger_url: &|url| match url.contains("sslmode=maybe") {
                true => Err("unknown value \"maybe\"".to_owned()),
                false => Ok(()),
            },
        };
        ledger(Secret::new(url), &walk).map(|url| url.expose().to_owned())
    }

    #[test]
    fn tls_is_refused_where_it_is_not_built_in() {
        for needs in ["h/d?sslmode=require", "h/d?a=b&sslmode=verify-full&c=d", "h?ssl-mode=VERIFY-CA"] {
            let url = Url::parse(&format!("postgres://{needs}")).expect("a URL");
            assert!(tls_mode(&url).is_some(), "{needs}");
        }
        for free in ["h/d", "h/require?sslmode=prefer", "h/d?sslmode=disable", "h/d?x=require"] {
            let url = Url::parse(&format!("postgres://{free}")).expect("a URL");
            assert_eq!(tls_mode(&url), None, "{free}");
        }
        let tls = cfg!(feature = "tls");
        assert_eq!(lock(Secret::new("rediss://h")).is_ok(), tls);
        assert_eq!(lock(Secret::new("valkeys://h")).is_ok(), tls);
        assert_eq!(ledger_at("postgres://h/d?sslmode=verify-full").is_ok(), tls);
        assert!(ledger_at("postgres://h/d?sslmode=prefer").is_ok());
    }

    #[test]
    fn addresses_of_a_lock_are_those_that_the_client_takes() {
        for good in [
            "redis://127.0.0.1:6379/0",
            "redis://user:pass@host",
            "redis://[::1]:6380",
            "redis://[::1]",
            "redis+unix:///run/redis.sock?db=1",
            "unix:///run/redis.sock",
            "redis://h:1?protocol=resp3",
        ] {
            assert!(lock(Secret::new(good)).is_ok(), "{good} was refused");
        }
        for bad in [
            "127.0.0.1:6379",
            "redis://",
            "redis://h:99999",
            "redis://h/db",
            "http://h",
            "unix://rel",
            "postgres://h/d",
        ] {
            assert!(lock(Secret::new(bad)).is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn a_relative_file_of_the_ledger_lies_beside_the_configuration() {
        for (written, used) in [
            ("sqlite:runner.db", "sqlite:/etc/run ner/runner.db"),
            ("sqlite://data/r.db", "sqlite:/etc/run ner/data/r.db"),
            ("sqlite:///var/r.db", "sqlite:/var/r.db"),
        ] {
            assert_eq!(ledger_at(written).as_deref(), Ok(used));
        }
        assert_eq!(default_ledger(Path::new("/a%b")).expose(), "sqlite:/a%25b/runner.db");
    }

    #[test]
    fn what_the_ledger_cannot_use_is_refused() {
        for bad in [
            "sqlite::memory:",
            "runner.db",
            "mysql://h/d",
            "postgres://",
            "postgres:h/d",
            "redis://h",
            "postgres://u@h:no/d",
            "postgres://h:70000",
            "postgres://h:0/d",
            "postgres://d b/d",
            "postgres://h/d?sslmode=maybe",
        ] {
            assert!(ledger_at(bad).is_err(), "{bad} was accepted");
        }
    }

    #[test]
    fn words_of_a_client_lose_the_values_that_they_quote() {
        let fault = ledger_at("postgres://h/d?sslmode=maybe").expect_err("a fault");
        assert_eq!(fault.message, "unknown value ***");
    }

    #[test]
    fn no_message_shows_the_address() {
        for bad in [
            "S3CRET",
            "S3CRET:x",
            "redis://:S3CRET@h:x",
            "redis://:S3CRET@",
            "ftp://u:S3CRET@h",
            "S3CRET://h",
            "postgres://u:S3CRET@h:x/d",
            "postgres://u:S3CRET@d b/d",
            "postgres:S3CRET",
            "sqlite:S3CRET?S3CRET",
        ] {
            for fault in [lock(Secret::new(bad)).err(), ledger_at(bad).err()].into_iter().flatten() {
                assert!(!format!("{fault:?}").contains("S3CRET"), "{fault:?}");
            }
        }
    }
}
