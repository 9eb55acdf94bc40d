//! A backend under test, with real time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lockcore::{
    AcquireOutcome, AcquireRequest, BootClock, BoxFuture, DoneMark, LockBackend, LockError, LockKey, Locks,
    ReleaseOutcome, RenewOutcome, SystemBootClock, Token,
};
use tokio::runtime::Handle;

pub(crate) struct Bench {
    pub(crate) backend: Arc<Counted>,
    pub(crate) clock: Arc<dyn BootClock>,
    pub(crate) locks: Locks,
    #[cfg(feature = "redis")]
    _server: Option<testbed::PrivateRedis>,
}

impl Bench {
    pub(crate) fn memory() -> Self {
        let clock: Arc<dyn BootClock> = Arc::new(SystemBootClock);
        let backend = Counted::new(lockcore::in_process(Arc::clone(&clock)));
        let locks = Locks::new(backend.clone(), Arc::clone(&clock), Handle::current());
        Self {
            backend,
            clock,
            locks,
            #[cfg(feature = "redis")]
            _server: None,
        }
    }

    #[cfg(feature = "redis")]
    pub(crate) fn redis() -> Self {
        let server = testbed::PrivateRedis::start();
        let options = lockcore::OpenOptions::new(Handle::current(), Handle::current());
        // A machine that runs many tests at once may well take half a second for a reply.
        let options = options.timeout(Duration::from_secs(5));
        let clock: Arc<dyn BootClock> = Arc::new(SystemBootClock);
        let backend = Counted::new(lockcore::open(&server.url(), options).unwrap());
        let locks = Locks::new(backend.clone(), Arc::clone(&clock), Handle::current());
        Self { backend, clock, locks, _server: Some(server) }
    }
}

/// Counts acquisitions on their way to a backend.
#[derive(Debug)]
pub(crate) struct Counted {
    backend: Arc<dyn LockBackend>,
    acquires: AtomicUsize,
}

impl Counted {
    fn new(backend: Arc<dyn LockBackend>) -> Arc<Self> {
        Arc::new(Self { backend, acquires: AtomicUsize::new(0) })
    }

    pub(crate) fn acquires(&self) -> usize {
        self.acquires.load(Ordering::SeqCst)
    }
}

impl LockBackend for Counted {
    fn acquire<'a>(
        &'a self,
        request: &'a AcquireRequest,
    ) -> BoxFuture<'a, Result<AcquireOutcome, LockError>> {
        self.acquires.fetch_add(1, Ordering::SeqCst);
        self.backend.acquire(request)
    }

    fn renew<'a>(
        &'a self,
        key: &'a LockKey,
        token: &'a Token,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<RenewOutcome, LockError>> {
        self.backend.renew(key, token, ttl)
    }

    fn release<'a>(
        &'a self,
        key: &'a LockKey,
        token: &'a Token,
        done: Option<&'a DoneMark>,
    ) -> BoxFuture<'a, Result<ReleaseOutcome, LockError>> {
        self.backend.release(key, token, done)
    }
}
