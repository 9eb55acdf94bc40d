//! Addresses of servers: checked as far as one can without asking them, and never quoted, since
//! they hold passwords.

use std::path::{Path, PathBuf};

use super::secret::Secret;
use super::value::Fault;

/// Schemes of a lock's address over TCP.
const REDIS_TCP: [&str; 4] = ["redis", "rediss", "valkey", "valkeys"];

/// Those of them that need TLS.
const REDIS_TLS: [&str; 2] = ["rediss", "valkeys"];

/// What `sslmode` says where a connection without TLS will not do.
const POSTGRES_TLS: [&str; 3] = ["require", "verify-ca", "verify-full"];

/// Schemes of a lock's address over a unix socket.
const REDIS_UNIX: [&str; 3] = ["redis+unix", "valkey+unix", "unix"];

/// The ledger's file when no address is given.
const LEDGER_FILE: &str = "runner.db";

/// Which database a ledger's address speaks of.
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
pub(crate) fn lock(url: Secret) -> Result<Secret, Fault> {
    let like = "write for example \"redis://127.0.0.1:6379/0\"";
    let Some((scheme, rest)) = url.expose().split_once("://") else {
        return Err(Fault::new("the lock's address has no scheme").hint(like));
    };
    if REDIS_UNIX.contains(&scheme) {
        let path = rest.split('?').next().unwrap_or_default();
        return match path.starts_with('/') && path.len() > 1 {
            true => Ok(url),
            false => {
                Err(Fault::new("a unix socket needs an absolute path")
                    .hint("write redis+unix:///path/to/socket"))
            }
        };
    }
    if !REDIS_TCP.contains(&scheme) {
        let known: Vec<&str> = REDIS_TCP.into_iter().chain(REDIS_UNIX).collect();
        let hint = match scheme {
            "postgres" | "postgresql" | "sqlite" => {
                "that is an address for ledger.url; the lock lives in Redis".to_owned()
            }
            _ => format!("the schemes are {}", known.join(", ")),
        };
        return Err(
            Fault::new(format!("the lock's address has the scheme {:?}", shown_scheme(scheme))).hint(hint)
        );
    }
    if REDIS_TLS.contains(&scheme) {
        built_in(cfg!(feature = "tls"), &format!("the lock's address has the scheme {scheme:?}"))?;
    }
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let host = authority.rsplit('@').next().unwrap_or_default();
    check_host(host).map_err(|message| Fault::new(message).hint(like))?;
    let database = path.split('?').next().unwrap_or_default();
    if !database.is_empty() && database.parse::<i64>().is_err() {
        return Err(Fault::new("the part after the host must be the number of a database").hint(like));
    }
    Ok(url)
}

/// Checks the address of a ledger and puts a relative SQLite path below `directory`.
pub(crate) fn ledger(url: Secret, directory: &Path) -> Result<Secret, Fault> {
    let hint = "write \"postgres://user@host/database\" or \"sqlite:runner.db\"";
    let Some((scheme, rest)) = url.expose().split_once(':') else {
        return Err(Fault::new("the ledger's address has no scheme").hint(hint));
    };
    match scheme {
        "postgres" | "postgresql" => match rest.strip_prefix("//") {
            Some(rest) if !rest.trim_matches('/').is_empty() => {
                if let Some(mode) = POSTGRES_TLS.into_iter().find(|mode| asks_for(rest, mode)) {
                    built_in(cfg!(feature = "tls"), &format!("the ledger's address has sslmode={mode}"))?;
                }
                let authority = rest.split(['/', '?']).next().unwrap_or_default();
                match check_port(authority.rsplit('@').next().unwrap_or_default()) {
                    Ok(()) => Ok(url),
                    Err(NoPort) => {
                        Err(Fault::new("the ledger's address has a port that is no number from 1 to 65535")
                            .hint(hint))
                    }
                }
            }
            _ => Err(Fault::new("the ledger's address names no host").hint(hint)),
        },
        "sqlite" => sqlite(rest.strip_prefix("//").unwrap_or(rest), directory),
        "redis" | "rediss" => {
            Err(Fault::new("the ledger cannot live in Redis").hint("that is an address for lock.url"))
        }
        _ => {
            Err(Fault::new(format!("the ledger's address has the scheme {:?}", shown_scheme(scheme)))
                .hint(hint))
        }
    }
}

/// Whether the options of a PostgreSQL address say that its `sslmode` is `mode`.
fn asks_for(rest: &str, mode: &str) -> bool {
    let (_, options) = rest.split_once('?').unwrap_or_default();
    let mut pairs = options.split('&').filter_map(|pair| pair.split_once('='));
    pairs.any(|(name, value)| matches!(name, "sslmode" | "ssl-mode") && value.eq_ignore_ascii_case(mode))
}

/// A wish for TLS is refused where it could not be granted, rather than failing at the first run.
fn built_in(tls: bool, wish: &str) -> Result<(), Fault> {
    if tls {
        return Ok(());
    }
    Err(Fault::new(format!("{wish}, and TLS is not built in"))
        .hint("build the runner with its feature \"tls\""))
}

/// The address of the file that is used when none is given.
pub(crate) fn usual_ledger(directory: &Path) -> Secret {
    Secret::new(format!("sqlite:{}", escaped(&directory.join(LEDGER_FILE))))
}

fn sqlite(rest: &str, directory: &Path) -> Result<Secret, Fault> {
    let (file, options) = match rest.split_once('?') {
        Some((file, options)) => (file, format!("?{options}")),
        None => (rest, String::new()),
    };
    if file == ":memory:" || options.contains("mode=memory") {
        return Err(Fault::new("a ledger in memory forgets what has run").hint("write \"sqlite:runner.db\""));
    }
    if file.is_empty() {
        return Err(Fault::new("the ledger's address names no file").hint("write \"sqlite:runner.db\""));
    }
    let file = if file.starts_with('/') { file.to_owned() } else { format!("{}/{file}", escaped(directory)) };
    Ok(Secret::new(format!("sqlite:{file}{options}")))
}

/// A path as it stands in an address, where `?`, `#` and `%` mean something else.
fn escaped(path: &Path) -> String {
    path.to_string_lossy().replace('%', "%25").replace('?', "%3F").replace('#', "%23")
}

/// The directory of a file, absolute where the system can tell.
pub(crate) fn directory_of(file: &Path) -> PathBuf {
    let absolute = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    absolute.parent().unwrap_or(Path::new("/")).to_owned()
}

/// A scheme worth showing. What stands before the colon may be anything, a password too.
fn shown_scheme(scheme: &str) -> &str {
    let plain = scheme.len() <= 12 && scheme.chars().all(|c| c.is_ascii_lowercase() || c == '+');
    if plain { scheme } else { "…" }
}

fn check_host(host: &str) -> Result<(), &'static str> {
    let (name, _) = name_and_port(host);
    if name.split('?').next().unwrap_or_default().is_empty() {
        return Err("the lock's address names no host");
    }
    check_port(host).map_err(|NoPort| "the lock's address has a port that is no number from 1 to 65535")
}

/// What stands for a port is none.
struct NoPort;

fn check_port(host: &str) -> Result<(), NoPort> {
    let (_, port) = name_and_port(host);
    let port = port.map(|port| port.split('?').next().unwrap_or_default());
    match port.map(str::parse::<u16>) {
        Some(Err(_) | Ok(0)) => Err(NoPort),
        _ => Ok(()),
    }
}

fn name_and_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        // An address of version 6 has colons of its own, within brackets.
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tls_is_wished_for_in_three_ways_and_refused_where_it_is_not_built_in() {
        for wish in ["h/d?sslmode=require", "h/d?a=b&sslmode=verify-full&c=d", "h?ssl-mode=VERIFY-CA"] {
            assert!(POSTGRES_TLS.into_iter().any(|mode| asks_for(wish, mode)), "{wish}");
        }
        for wish in ["h/d", "h/require?sslmode=prefer", "h/d?sslmode=disable", "h/d?x=require"] {
            assert!(!POSTGRES_TLS.into_iter().any(|mode| asks_for(wish, mode)), "{wish}");
        }
        assert_eq!(built_in(true, "this"), Ok(()));
        let fault = built_in(false, "this").expect_err("a fault");
        assert!(fault.hint.expect("a hint").contains("feature \"tls\""));
        let tls = cfg!(feature = "tls");
        assert_eq!(lock(Secret::new("rediss://h")).is_ok(), tls);
        assert_eq!(lock(Secret::new("valkeys://h")).is_ok(), tls);
        assert_eq!(ledger(Secret::new("postgres://h/d?sslmode=verify-full"), Path::new("/")).is_ok(), tls);
        assert!(ledger(Secret::new("postgres://h/d?sslmode=prefer"), Path::new("/")).is_ok());
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
        let at = |url: &str| {
            ledger(Secret::new(url), Path::new("/etc/run ner")).map(|url| url.expose().to_owned())
        };
        assert_eq!(at("sqlite:runner.db").as_deref(), Ok("sqlite:/etc/run ner/runner.db"));
        assert_eq!(
            at("sqlite://data/r.db?mode=rwc").as_deref(),
            Ok("sqlite:/etc/run ner/data/r.db?mode=rwc")
        );
        assert_eq!(at("sqlite:///var/r.db").as_deref(), Ok("sqlite:/var/r.db"));
        assert_eq!(usual_ledger(Path::new("/a%b")).expose(), "sqlite:/a%25b/runner.db");
        for bad in [
            "sqlite::memory:",
            "sqlite:",
            "runner.db",
            "mysql://h/d",
            "postgres://",
            "redis://h",
            "postgres://u@h:no/d",
            "postgres://h:70000",
        ] {
            assert!(at(bad).is_err(), "{bad} was accepted");
        }
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
        ] {
            for fault in [lock(Secret::new(bad)).err(), ledger(Secret::new(bad), Path::new("/")).err()]
                .into_iter()
                .flatten()
            {
                assert!(!format!("{fault:?}").contains("S3CRET"), "{fault:?}");
            }
        }
    }
}
