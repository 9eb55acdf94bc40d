//! Locks on a Redis server. The one file that knows the client.

use std::fmt::{self, Debug};
use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::io::tcp::TcpSettings;
use redis::io::tcp::socket2::TcpKeepalive;
use redis::{
    Client, ErrorKind, FromRedisValue, IntoConnectionInfo, RedisError, RedisResult, Script, ScriptInvocation,
    ServerErrorKind, Value, from_redis_value,
};
use tokio::runtime::Handle;

use crate::{
    AcquireOutcome, AcquireRequest, BoxFuture, DoneMark, Holder, LockBackend, LockError, LockKey,
    ReleaseOutcome, RenewOutcome, Token,
};

/// The longest wait for one reply or one connection, whatever the ttl.
const LONGEST_TIMEOUT: Duration = Duration::from_millis(500);

/// How a [`RedisBackend`] connects.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RedisOptions {
    /// How long to wait for a connection, and then for a reply: 500 ms unless set. A call takes at most
    /// twice as long, four times when the server must first learn the script.
    pub timeout: Duration,
    /// The runtime on which the connection of acquisitions and releases lives.
    pub requests: Handle,
    /// The runtime on which the connection of renewals lives.
    pub renewals: Handle,
}

impl RedisOptions {
    /// Connections on these two runtimes, which need I/O and time and must outlive the backend.
    ///
    /// A socket is served by the runtime it was opened on. Work that blocks all threads of a runtime
    /// starves its sockets too, so neither of these should run work that is not trusted to yield.
    #[must_use]
    pub fn new(requests: Handle, renewals: Handle) -> Self {
        Self { timeout: LONGEST_TIMEOUT, requests, renewals }
    }

    /// Waits for a connection or a reply at most a sixth of `ttl`, and at most 500 ms.
    ///
    /// Pass the shortest ttl of all locks: a renewal that fails must leave time for another one.
    #[must_use]
    pub fn shortest_ttl(self, ttl: Duration) -> Self {
        self.timeout((ttl / 6).min(LONGEST_TIMEOUT))
    }

    /// Waits for a connection or a reply at most `timeout`, at least a millisecond.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout: timeout.max(Duration::from_millis(1)), ..self }
    }
}

/// A Redis URL that cannot be used. Does not repeat the URL, which may hold a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a usable Redis URL: {reason}")]
pub struct InvalidRedisUrl {
    reason: String,
}

/// Locks on one Redis server (7 or 6), reached over two connections.
///
/// Acquisitions and releases share one, renewals have the other, so that a burst of acquisitions never
/// stands in front of a renewal. Both are opened at first use and after a failure; a call that fails is
/// not repeated here, since only the caller knows how long it may wait.
pub struct RedisBackend {
    requests: Link,
    renewals: Link,
    acquire: Script,
    renew: Script,
    release: Script,
}

impl RedisBackend {
    /// A backend for the server at `url`: `redis://[user:password@]host[:port][/db]`, `unix:///path`,
    /// or `rediss://…` when built with the feature `tls`. Does not connect yet.
    ///
    /// # Errors
    /// [`InvalidRedisUrl`]. It never repeats any part of the URL.
    pub fn new(url: &str, options: RedisOptions) -> Result<Self, InvalidRedisUrl> {
        let RedisOptions { timeout, requests, renewals } = options;
        Ok(Self {
            requests: Link::new(url, timeout, requests)?,
            renewals: Link::new(url, timeout, renewals)?,
            acquire: Script::new(include_str!("lua/acquire.lua")),
            renew: Script::new(include_str!("lua/renew.lua")),
            release: Script::new(include_str!("lua/release.lua")),
        })
    }

    /// Whether [`new`](Self::new) would take the URL. Asks no server and needs no runtime.
    ///
    /// # Errors
    /// [`InvalidRedisUrl`]. It never repeats any part of the URL.
    pub fn check_url(url: &str) -> Result<(), InvalidRedisUrl> {
        Client::open(url.into_connection_info()?)?;
        Ok(())
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

/// Redis counts whole milliseconds and refuses an expiry of none.
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
            // A key that somebody set by hand may hold anything.
            let holder: Vec<u8> = from_redis_value(next())?;
            let holder = String::from_utf8_lossy(&holder);
            let left: i64 = from_redis_value(next())?;
            // Nor need it have an expiry (-1).
            let remaining = u64::try_from(left).map_or(Duration::MAX, Duration::from_millis);
            Ok(AcquireOutcome::Held { holder: Holder::from_value(&holder), remaining })
        }
    }
}

/// One connection that lives on one runtime and is replaced when it is in doubt.
struct Link {
    client: Client,
    config: ConnectionManagerConfig,
    runtime: Handle,
    server: String,
    password: Option<String>,
    wire: Mutex<Wire>,
}

/// The connection of the moment, and how many replies it has brought.
#[derive(Clone)]
struct Wire {
    manager: ConnectionManager,
    replies: Arc<AtomicU64>,
}

impl Link {
    fn new(url: &str, timeout: Duration, runtime: Handle) -> Result<Self, InvalidRedisUrl> {
        let keepalive = TcpKeepalive::new()
            .with_time(Duration::from_secs(5))
            .with_interval(Duration::from_secs(1))
            .with_retries(3);
        // Without the user timeout the kernel stays on a dead path for a quarter of an hour.
        let tcp = TcpSettings::default()
            .set_nodelay(true)
            .set_keepalive(keepalive)
            .set_user_timeout(Duration::from_secs(2));
        let info = url.into_connection_info()?.set_tcp_settings(tcp);
        // The client's own retries would block every caller in their backoff, nine seconds by default.
        let config = ConnectionManagerConfig::new()
            .set_connection_timeout(Some(timeout))
            .set_response_timeout(Some(timeout))
            .set_number_of_retries(0)
            .set_pipeline_buffer_size(1024);
        let server = info.addr().to_string();
        let password = info.redis_settings().password().map(Into::into);
        let client = Client::open(info)?;
        let wire = Mutex::new(Wire::open(&client, &config, &runtime)?);
        Ok(Self { client, config, runtime, server, password, wire })
    }

    /// Runs a script; replaces the connection if that leaves it in doubt.
    async fn invoke<T: FromRedisValue + Send + Sync>(&self, script: &ScriptInvocation<'_>) -> RedisResult<T> {
        let mut wire = self.wire().clone();
        let heard = wire.replies.load(Ordering::Relaxed);
        let call = script.invoke_async(&mut wire.manager);
        let result = within(&self.runtime, Box::pin(call)).await;
        let silent = wire.replies.load(Ordering::Relaxed) == heard;
        match &result {
            Err(error) if in_doubt(error, silent) => self.replace(&wire),
            _ => _ = wire.replies.fetch_add(1, Ordering::Relaxed),
        }
        result
    }

    /// Lets the next call open a new connection, unless another call has already seen to it.
    fn replace(&self, failed: &Wire) {
        let mut wire = self.wire();
        if Arc::ptr_eq(&wire.replies, &failed.replies)
            && let Ok(fresh) = Wire::open(&self.client, &self.config, &self.runtime)
        {
            *wire = fresh;
        }
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn unavailable(&self, doing: &'static str, error: RedisError) -> LockError {
        match &self.password {
            // A server that does not know AUTH repeats its arguments in the error.
            Some(password) if !password.is_empty() && error.to_string().contains(password.as_str()) => {
                LockError::unavailable(doing, error.to_string().replace(password.as_str(), "***"))
            }
            _ => LockError::unavailable(doing, error),
        }
    }
}

impl Wire {
    fn open(client: &Client, config: &ConnectionManagerConfig, runtime: &Handle) -> RedisResult<Self> {
        let _inside = runtime.enter();
        let manager = ConnectionManager::new_lazy_with_config(client.clone(), config.clone())?;
        Ok(Self { manager, replies: Arc::default() })
    }
}

/// Whether a connection must not be used again after `error`; `silent` when it has brought no reply
/// since the request was sent.
fn in_doubt(error: &RedisError, silent: bool) -> bool {
    match error.kind() {
        // A timeout on a connection that answers others is a slow request. On a silent one the path
        // may be dead, and the manager itself would stay on it for as long as the kernel does.
        ErrorKind::Io if error.is_timeout() => silent,
        // The manager reconnects by itself, once, at this moment; if that fails, it would hand the
        // failure to the next caller, however much later that is.
        ErrorKind::Io => true,
        // A failover has made our server a replica. The name may lead to the new one by now.
        ErrorKind::Server(ServerErrorKind::ReadOnly | ServerErrorKind::MasterDown) => true,
        _ => error.is_unrecoverable_error(),
    }
}

/// Polls `call` inside `runtime`, whichever thread does the polling: the socket, the timers and the
/// driver task that it makes belong to that runtime and are served by it.
async fn within<T>(runtime: &Handle, mut call: BoxFuture<'_, T>) -> T {
    poll_fn(|context| {
        let _inside = runtime.enter();
        call.as_mut().poll(context)
    })
    .await
}

impl From<RedisError> for InvalidRedisUrl {
    fn from(error: RedisError) -> Self {
        // What stands behind the dash may quote the URL.
        let text = error.to_string();
        let reason = text.split(" - ").next().unwrap_or_default().to_lowercase();
        Self { reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(url: &str) -> Result<RedisBackend, InvalidRedisUrl> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        RedisBackend::new(url, RedisOptions::new(runtime.handle().clone(), runtime.handle().clone()))
    }

    #[test]
    fn neither_debug_nor_an_invalid_url_shows_the_password() {
        let backend = open("redis://user:hunter2@localhost:6379/0").unwrap();
        assert_eq!(format!("{backend:?}"), r#"RedisBackend { server: "localhost:6379", .. }"#);
        for url in [
            "redis://user:hunter2@localhost:6379/nodb",
            "redis://user:hunter2@localhost:99999/0",
            "redis://user:hunter2@localhost/0?protocol=hunter2",
            "postgres://user:hunter2@localhost/0",
            "rediss://user:hunter2@localhost/0#hunter2",
            "hunter2",
        ] {
            let error = open(url).map(|_| url).unwrap_err();
            assert_eq!(RedisBackend::check_url(url), Err(error.clone()));
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn timeouts_leave_room_for_a_second_renewal_within_a_third_of_the_ttl() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let options = RedisOptions::new(runtime.handle().clone(), runtime.handle().clone());
        assert_eq!(options.timeout, Duration::from_millis(500));
        let short = options.clone().shortest_ttl(Duration::from_millis(600));
        assert_eq!(short.timeout, Duration::from_millis(100));
        assert_eq!(options.shortest_ttl(Duration::from_secs(60)).timeout, Duration::from_millis(500));
    }
}
