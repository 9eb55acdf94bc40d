//! Many tasks increment one counter that only the lock protects.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lockcore::{Acquisition, LockBackend, Locks, ReleaseOutcome, SystemBootClock, Terms};
use tokio::runtime::Handle;
use tokio::task::{JoinSet, yield_now};

use crate::support::{key, request};

const TASKS: u64 = 8;
const RAISES: u64 = 25;
const TTL: Duration = Duration::from_secs(120);

/// Reads, lets others run, writes. Without a lock, what others wrote meanwhile is lost.
async fn raise(counter: &AtomicU64) {
    let seen = counter.load(Ordering::SeqCst);
    for _ in 0..seen % 4 + 1 {
        yield_now().await;
    }
    counter.store(seen + 1, Ordering::SeqCst);
}

async fn raise_under_lock(locks: Locks, instance: String, counter: Arc<AtomicU64>) {
    let terms = Terms::new(3, Duration::ZERO).max_wait(Duration::from_millis(50));
    for _ in 0..RAISES {
        let guard = loop {
            match locks.acquire(request(&key(), &instance, TTL), terms).await.unwrap() {
                Acquisition::Acquired(guard) => break guard,
                Acquisition::Held { .. } => {}
                other => panic!("{other:?}"),
            }
        };
        raise(&counter).await;
        assert_eq!(guard.release(None).await.outcome.unwrap(), ReleaseOutcome::Released);
    }
}

async fn race(backend: Arc<dyn LockBackend>) -> u64 {
    let locks = Locks::new(backend, Arc::new(SystemBootClock), Handle::current());
    let counter = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for task in 0..TASKS {
        tasks.spawn(raise_under_lock(locks.clone(), format!("task-{task}"), Arc::clone(&counter)));
    }
    tasks.join_all().await;
    counter.load(Ordering::SeqCst)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_increment_is_lost_under_a_memory_lock() {
    let backend = lockcore::in_process(Arc::new(SystemBootClock));
    assert_eq!(race(backend).await, TASKS * RAISES);
}

#[cfg(feature = "redis")]
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_increment_is_lost_under_a_redis_lock() {
    let server = testbed::PrivateRedis::start();
    let options = lockcore::OpenOptions::new(Handle::current(), Handle::current());
    let options = options.timeout(Duration::from_secs(5));
    let backend = lockcore::open(&server.url(), options).unwrap();
    assert_eq!(race(backend).await, TASKS * RAISES);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn without_a_lock_the_same_tasks_do_lose_increments() {
    let counter = Arc::new(AtomicU64::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..TASKS {
        let counter = Arc::clone(&counter);
        tasks.spawn(async move {
            for _ in 0..RAISES {
                raise(&counter).await;
            }
        });
    }
    tasks.join_all().await;
    assert!(counter.load(Ordering::SeqCst) < TASKS * RAISES);
}
