//! From a URL to a backend: which server a scheme stands for, and how it is reached.

use std::sync::Arc;

use crate::memory::MemoryBackend;
use crate::{BootClock, InvalidUrl, LockBackend, OpenOptions};

/// Every scheme that a lock's URL may have.
const SCHEMES: [Scheme; 7] = [
    Scheme { name: "redis", server: Server::Redis, tls: false },
    Scheme { name: "rediss", server: Server::Redis, tls: true },
    Scheme { name: "valkey", server: Server::Redis, tls: false },
    Scheme { name: "valkeys", server: Server::Redis, tls: true },
    Scheme { name: "redis+unix", server: Server::Redis, tls: false },
    Scheme { name: "valkey+unix", server: Server::Redis, tls: false },
    Scheme { name: "unix", server: Server::Redis, tls: false },
];

struct Scheme {
    name: &'static str,
    server: Server,
    /// Whether connections are encrypted.
    tls: bool,
}

/// What kind of server keeps the locks. A new kind is a variant, its schemes, and a file beside `redis`.
#[derive(Clone, Copy)]
enum Server {
    Redis,
}

/// Opens the locks of the server at `url`. Does not connect yet: the first call does, so a process can
/// start while its lock server is down.
///
/// | URL | server |
/// |---|---|
/// | `redis://[user:password@]host[:port][/database]`, `valkey://…` | Redis or Valkey |
/// | `rediss://…`, `valkeys://…` | the same over TLS; needs the feature `tls` |
/// | `redis+unix:///path`, `valkey+unix:///path`, `unix:///path` | the same over a Unix socket |
///
/// # Errors
/// [`InvalidUrl`] when the URL cannot be used, or when this build lacks what it needs.
pub fn open(url: &str, options: OpenOptions) -> Result<Arc<dyn LockBackend>, InvalidUrl> {
    match server(url)? {
        #[cfg(feature = "redis")]
        Server::Redis => Ok(Arc::new(crate::redis::RedisBackend::new(url, options)?)),
        #[cfg(not(feature = "redis"))]
        Server::Redis => {
            drop(options);
            Err(no_client())
        }
    }
}

/// Whether [`open`] would take `url`. Asks no server and needs no runtime.
///
/// # Errors
/// [`InvalidUrl`], as from [`open`].
pub fn check_url(url: &str) -> Result<(), InvalidUrl> {
    match server(url)? {
        #[cfg(feature = "redis")]
        Server::Redis => crate::redis::check_url(url),
        #[cfg(not(feature = "redis"))]
        Server::Redis => Err(no_client()),
    }
}

/// Locks in the memory of this process, which need no server. Their expiry is judged by `clock`.
///
/// They protect the tasks of one process from one another, and nothing else.
#[must_use]
pub fn in_process(clock: Arc<dyn BootClock>) -> Arc<dyn LockBackend> {
    Arc::new(MemoryBackend::new(clock))
}

/// The server that the URL's scheme stands for, if this build can reach it.
fn server(url: &str) -> Result<Server, InvalidUrl> {
    let Some((found, _)) = url.split_once("://") else {
        return Err(InvalidUrl::new("it does not begin with a scheme", known_schemes()));
    };
    let Some(scheme) = SCHEMES.iter().find(|scheme| scheme.name.eq_ignore_ascii_case(found)) else {
        let found = if is_plainly_a_scheme(found) { format!(" {found:?}") } else { String::new() };
        return Err(InvalidUrl::new(format!("its scheme{found} is unknown"), known_schemes()));
    };
    if scheme.tls && !cfg!(feature = "tls") {
        let problem = format!("its scheme {:?} needs TLS, and this build has no TLS", scheme.name);
        return Err(InvalidUrl::new(problem, "build with the feature \"tls\""));
    }
    Ok(scheme.server)
}

fn known_schemes() -> String {
    let names: Vec<_> = SCHEMES.iter().map(|scheme| scheme.name).collect();
    format!("the schemes are {}; write for example redis://127.0.0.1:6379/0", names.join(", "))
}

/// Whether the text before `://` may be shown. A password that was pasted there must not be.
fn is_plainly_a_scheme(text: &str) -> bool {
    !text.is_empty() && text.len() <= 16 && text.chars().all(|c| c.is_ascii_lowercase() || c == '+')
}

#[cfg(not(feature = "redis"))]
fn no_client() -> InvalidUrl {
    InvalidUrl::new("this build has no Redis client", "build lockcore with the feature \"redis\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(url: &str) -> String {
        check_url(url).map(|()| url).unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_scheme_is_refused_by_name_with_those_that_are_known() {
        for scheme in ["http", "redis+sentinel", "redis+cluster"] {
            let text = refusal(&format!("{scheme}://host"));
            assert!(text.contains(&format!("its scheme {scheme:?} is unknown")), "{text}");
            for known in SCHEMES {
                assert!(text.contains(known.name), "{text} does not name {}", known.name);
            }
        }
        for url in ["", "localhost:6379", "redis:localhost", "hunter2"] {
            let text = refusal(url);
            assert!(text.contains("does not begin with a scheme"), "{text}");
        }
    }

    #[test]
    fn text_before_the_colon_that_may_be_a_password_is_not_shown() {
        for url in
            ["hunter2://host", "HUNTER://host", "correct horse://host", "abcdefghijklmnopq://host", "://h"]
        {
            let text = refusal(url);
            assert!(text.contains("its scheme is unknown"), "{text}");
        }
    }

    #[test]
    fn tls_is_refused_where_it_was_not_built_in() {
        for url in ["rediss://host", "valkeys://host", "REDISS://host"] {
            assert_eq!(check_url(url).is_ok(), cfg!(feature = "tls"), "{url}");
            if !cfg!(feature = "tls") {
                assert!(refusal(url).contains("this build has no TLS"), "{}", refusal(url));
            }
        }
    }

    #[cfg(not(feature = "redis"))]
    #[test]
    fn without_the_redis_client_a_redis_url_is_refused() {
        assert!(refusal("redis://host").contains("no Redis client"));
    }
}
