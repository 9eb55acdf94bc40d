//! Locks on a Redis server. No file outside this folder names the Redis client.

mod address;
mod link;

use std::fmt::{self, Debug};
use std::time::Duration;

use redis::{RedisResult, Script, Value, from_redis_value};

pub(crate) use address::check_url;

use self::link::Link;
use crate::{
    AcquireOutcome, AcquireRequest, BoxFuture, DoneMark, Holder, InvalidUrl, LockBackend, LockError, LockKey,
    OpenOptions, ReleaseOutcome, RenewOutcome, Token,
};

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
            acquire: Script::new(include_str!("../lua/acquire.lua")),
            renew: Script::new(include_str!("../lua/renew.lua")),
            release: Script::new(include_str!("../lua/release.lua")),
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
