//! Locks on a Redis server. No other file names the Redis client.

use std::fmt::{self, Debug};
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{
    Client, ConnectionInfo, ErrorKind, FromRedisValue, IntoConnectionInfo, RedisError, RedisResult, Script,
    ScriptInvocation, ServerErrorKind, Value, from_redis_value,
};
use tokio::runtime::Handle;
use url::Url;

use crate::{
    AcquireOutcome, AcquireRequest, BoxFuture, DoneMark, Holder, InvalidUrl, LockBackend, LockError, LockKey,
    OpenOptions, ReleaseOutcome, RenewOutcome, Token,
};

/// What to write instead of a URL that cannot be used.
const EXAMPLE: &str = "write for example redis://127.0.0.1:6379/0";

/// Locks on one Redis server (7 or 6), reached over two connections.
///
/// Acquisitions and releases share one connection and renewals have the other, so that no renewal waits
/// behind a burst of acquisitions. Each is opened at the first call and again after a failure. A failed
/// call is not repeated here: only the caller knows how long it may wait.
pub(crate) struct RedisBackend {
    requests: Link,
    renewals: Link,
    acquire: Script,
    renew: Script,
    release: Script,
}

impl RedisBackend {
    /// Locks on the server at `url`. Does not connect yet.
    pub(crate) fn new(url: &str, options: OpenOptions) -> Result<Self, InvalidUrl> {
        let OpenOptions { timeout, requests, renewals } = options;
        Ok(Self {
            requests: Link::new(url, timeout, requests)?,
            renewals: Link::new(url, timeout, renewals)?,
            acquire: Script::new(include_str!("lua/acquire.lua")),
            renew: Script::new(include_str!("lua/renew.lua")),
            release: Script::new(include_str!("lua/release.lua")),
        })
    }
}

impl Debug for RedisBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisBackend").field("server", &self.requests.server).finish_non_exhaustive()
    }
}

impl LockBackend for RedisBackend {
    fn acquire<'a>(
        &'a self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<AcquireOutcome, LockError>> {
        Box::pin(async move {
            let mut script = self.acquire.prepare_invoke();
            script.key(request.key.lock()).key(request.key.done());
            script.arg(request.token.as_str()).arg(millis(request.ttl));
            script.arg(request.unless_done.as_deref().unwrap_or(""));
            let reply = self.requests.invoke(&script).await.and_then(acquire_outcome);
            reply.map_err(|error| self.requests.unavailable("acquire", error))
        })
    }

    fn renew<'a>(
        &'a self,
        key: &'a LockKey,
        token: &'a Token,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<RenewOutcome, LockError>> {
        Box::pin(async move {
            let mut script = self.renew.prepare_invoke();
            script.key(key.lock()).arg(token.as_str()).arg(millis(ttl));
            match self.renewals.invoke(&script).await {
                Ok(true) => Ok(RenewOutcome::Renewed),
                Ok(false) => Ok(RenewOutcome::NotMine),
                Err(error) => Err(self.renewals.unavailable("renew", error)),
            }
        })
    }

    fn release<'a>(
        &'a self,
        key: &'a LockKey,
        token: &'a Token,
        done: Option<&'a DoneMark>,
    ) -> BoxFuture<'a, Result<ReleaseOutcome, LockError>> {
        Box::pin(async move {
            let mut script = self.release.prepare_invoke();
            script.key(key.lock()).key(key.done()).arg(token.as_str());
            script.arg(done.map_or("", |mark| &mark.subject));
            script.arg(done.map_or(0, |mark| millis(mark.ttl)));
            match self.requests.invoke(&script).await {
                Ok(true) => Ok(ReleaseOutcome::Released),
                Ok(false) => Ok(ReleaseOutcome::NotMine),
                Err(error) => Err(self.requests.unavailable("release", error)),
            }
        })
    }
}

/// Redis counts whole milliseconds and refuses an expiry of 0.
fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// Reads what `acquire.lua` returns.
fn acquire_outcome(reply: Vec<Value>) -> RedisResult<AcquireOutcome> {
    let mut parts = reply.into_iter();
    let mut next = || parts.next().unwrap_or(Value::Nil);
    let word: String = from_redis_value(next())?;
    match word.as_str() {
        "acquired" => Ok(AcquireOutcome::Acquired),
        "done" => Ok(AcquireOutcome::Done),
        _ => {
            // A key that somebody set by hand may hold any bytes.
            let holder: Vec<u8> = from_redis_value(next())?;
            let holder = String::from_utf8_lossy(&holder);
            let left: i64 = from_redis_value(next())?;
            // It may also have no expiry: -1.
            let remaining = u64::try_from(left).ok().map(Duration::from_millis);
            Ok(AcquireOutcome::Held { holder: Holder::from_value(&holder), remaining })
        }
    }
}

/// A connection that lives on one runtime, and is replaced when it cannot be relied on any more.
struct Link {
    client: Client,
    config: ConnectionManagerConfig,
    runtime: Handle,
    server: String,
    password: Option<String>,
    connection: Mutex<Connection>,
}

/// The current connection, and how many replies it has brought.
#[derive(Clone)]
struct Connection {
    manager: ConnectionManager,
    replies: Arc<AtomicU64>,
}

impl Link {
    fn new(url: &str, timeout: Duration, runtime: Handle) -> Result<Self, InvalidUrl> {
        let keepalive = TcpKeepalive::new()
            .with_time(Duration::from_secs(5))
            .with_interval(Duration::from_secs(1))
            .with_retries(3);
        // Without the user timeout the kernel would keep a dead network path for a quarter of an hour.
        let tcp = TcpSettings::default()
            .set_nodelay(true)
            .set_keepalive(keepalive)
            .set_user_timeout(Duration::from_secs(2));
        let info = connection_info(url)?.set_tcp_settings(tcp);
        // With its own retries the client would block every caller in its backoff, nine seconds by default.
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout))
            .set_number_of_retries(0)
            .set_pipeline_buffer_size(1024);
        let server = info.addr().to_string();
        let password = info.redis_settings().password().map(Into::into);
        let client = Client::open(info)?;
        let connection = Mutex::new(Connection::open(&client, &config, &runtime)?);
        Ok(Self { client, config, runtime, server, password, connection })
    }

    /// Runs a script. Replaces the connection if the outcome says that it cannot be relied on.
    async fn invoke<T: FromRedisValue + Send + Sync>(&self, script: &ScriptInvocation<'_>) -> RedisResult<T> {
        let mut connection = self.current().clone();
        let replies = connection.replies.load(Ordering::Relaxed);
        let call = script.invoke_async(&mut connection.manager);
        let result = within(&self.runtime, Box::pin(call)).await;
        let silent = connection.replies.load(Ordering::Relaxed) == replies;
        match &result {
            Err(error) if must_reconnect(error, silent) => self.replace(&connection),
            _ => _ = connection.replies.fetch_add(1, Ordering::Relaxed),
        }
        result
    }

    /// Lets the next call open a new connection, unless another call has replaced this one already.
    fn replace(&self, failed: &Connection) {
        let mut current = self.current();
        if Arc::ptr_eq(&current.replies, &failed.replies)
            && let Ok(fresh) = Connection::open(&self.client, &self.config, &self.runtime)
        {
            *current = fresh;
        }
    }

    fn current(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unavailable(&self, doing: &'static str, error: RedisError) -> LockError {
        match &self.password {
            // A server that does not know AUTH repeats the arguments of the command in its error.
            Some(password) if !password.is_empty() && error.to_string().contains(password.as_str()) => {
                LockError::unavailable(doing, error.to_string().replace(password.as_str(), "***"))
            }
            _ => LockError::unavailable(doing, error),
        }
    }
}

impl Connection {
    fn open(client: &Client, config: &ConnectionManagerConfig, runtime: &Handle) -> RedisResult<Self> {
        let _inside = runtime.enter();
        let manager = ConnectionManager::new_lazy_with_config(client.clone(), config.clone())?;
        Ok(Self { manager, replies: Arc::default() })
    }
}

/// Whether a connection must not be used again after `error`. `silent`: it has brought no reply, to any
/// call, since the request was sent.
fn must_reconnect(error: &RedisError, silent: bool) -> bool {
    match error.kind() {
        // If the connection answers other calls, this request was slow. If it is silent, the network path
        // may be dead, and the manager would keep it for as long as the kernel does.
        ErrorKind::Io if error.is_timeout() => silent,
        // The manager reconnects by itself, once, right now. If that fails, the next call would get that
        // failure, however much later it comes.
        ErrorKind::Io => true,
        // A failover has made our server a replica. Its name may lead to the new master by now.
        ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown) => true,
        _ => error.is_unrecoverable_error(),
    }
}

/// Polls `call` inside `runtime`, on whatever thread: the socket, the timers and the driver task that it
/// creates then belong to that runtime.
async fn within<T>(runtime: &Handle, mut call: BoxFuture<'_, T>) -> T {
    poll_fn(|context| {
        let _inside = runtime.enter();
        call.as_mut().poll(context)
    })
    .await
}

/// Whether the client would take the URL. Asks no server and needs no runtime.
pub(crate) fn check_url(url: &str) -> Result<(), InvalidUrl> {
    Client::open(connection_info(url)?)?;
    Ok(())
}

/// Where the server is, and who we are there.
fn connection_info(url: &str) -> Result<ConnectionInfo, InvalidUrl> {
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
    use super::*;

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
