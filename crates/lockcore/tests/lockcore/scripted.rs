//! A backend whose server fails when told to. Its locks are those of a real backend in memory.

use std::collections::VecDeque;
use std::future::pending;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lockcore::{
    AcquireOutcome, AcquireRequest, BootClock, BoxFuture, DoneMark, LockBackend, LockError, LockKey, Locks,
    ReleaseOutcome, RenewOutcome, Token,
};
use tokio::runtime::Handle;

use crate::support::RuntimeClock;

/// What happens to one request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fate {
    /// Carried out and answered.
    Answered,
    /// Refused without effect.
    Refused,
    /// Carried out; the reply is lost and the client times out after this long.
    ReplyLost(Duration),
    /// Carried out; the reply takes this long.
    Late(Duration),
    /// Carried out; there is never a reply or an error.
    Hangs,
}

/// What happens to one kind of request: to the next ones in a queue, and then to all others.
#[derive(Debug)]
pub(crate) struct Fates {
    queue: Mutex<(VecDeque<Fate>, Fate)>,
    calls: AtomicUsize,
}

impl Fates {
    fn new() -> Self {
        Self { queue: Mutex::new((VecDeque::new(), Fate::Answered)), calls: AtomicUsize::new(0) }
    }

    /// Decides what happens to the next requests, in order.
    pub(crate) fn next(&self, fates: impl IntoIterator<Item = Fate>) {
        self.queue.lock().unwrap().0.extend(fates);
    }

    /// Decides what happens to all requests from now on.
    pub(crate) fn all(&self, fate: Fate) {
        *self.queue.lock().unwrap() = (VecDeque::new(), fate);
    }

    /// How many requests came so far.
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }

    async fn meet<T>(
        &self,
        doing: &'static str,
        request: BoxFuture<'_, Result<T, LockError>>,
    ) -> Result<T, LockError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let fate = {
            let mut queue = self.queue.lock().unwrap();
            queue.0.pop_front().unwrap_or(queue.1)
        };
        match fate {
            Fate::Answered => request.await,
            Fate::Refused => Err(LockError::unavailable(doing, "connection refused")),
            Fate::ReplyLost(timeout) => {
                request.await?;
                tokio::time::sleep(timeout).await;
                Err(LockError::unavailable(doing, "timed out"))
            }
            Fate::Late(delay) => {
                let reply = request.await;
                tokio::time::sleep(delay).await;
                reply
            }
            Fate::Hangs => {
                request.await?;
                pending().await
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct Scripted {
    pub(crate) table: Arc<dyn LockBackend>,
    pub(crate) acquires: Fates,
    pub(crate) renewals: Fates,
    pub(crate) releases: Fates,
}

impl Scripted {
    pub(crate) fn new(clock: Arc<dyn BootClock>) -> Arc<Self> {
        let table = lockcore::in_process(clock);
        Arc::new(Self { table, acquires: Fates::new(), renewals: Fates::new(), releases: Fates::new() })
    }
}

impl LockBackend for Scripted {
    fn acquire<'a>(
        &'a self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<AcquireOutcome, LockError>> {
        Box::pin(self.acquires.meet("acquire", self.table.acquire(request)))
    }

    fn renew<'a>(
        &'a self,
        key: &'a LockKey,
        token: &'a Token,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<RenewOutcome, LockError>> {
        Box::pin(self.renewals.meet("renew", self.table.renew(key, token, ttl)))
    }

    fn release<'a>(
        &'a self,
        key: &'a LockKey,
        token: &'a Token,
        done: Option<&'a DoneMark>,
    ) -> BoxFuture<'a, Result<ReleaseOutcome, LockError>> {
        Box::pin(self.releases.meet("release", self.table.release(key, token, done)))
    }
}

/// Locks on a scripted server, in the runtime's time.
pub(crate) struct Scene {
    pub(crate) clock: Arc<RuntimeClock>,
    pub(crate) server: Arc<Scripted>,
    pub(crate) locks: Locks,
}

impl Scene {
    pub(crate) fn new() -> Self {
        let clock = Arc::new(RuntimeClock::new());
        let server = Scripted::new(clock.clone());
        let locks = Locks::new(server.clone(), clock.clone(), Handle::current());
        Self { clock, server, locks }
    }
}
