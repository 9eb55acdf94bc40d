//! A Redis server that is a replica for a moment, and what thousands of locks leave behind.

use std::sync::Arc;
use std::time::Duration;

use lockcore::{Acquisition, BootClock, Locks, Loss, OpenOptions, ReleaseOutcome, SystemBootClock, Terms};
use testbed::PrivateRedis;
use tokio::runtime::Handle;

use crate::proxy::Proxy;
use crate::support::{guard, key, request, wait_for};

fn locks(server: &PrivateRedis, timeout: Duration) -> Locks {
    let options = OpenOptions::new(Handle::current(), Handle::current()).timeout(timeout);
    let backend = lockcore::open(&server.url(), options).unwrap();
    Locks::new(backend, Arc::new(SystemBootClock), Handle::current())
}

#[tokio::test]
async fn a_server_that_takes_no_writes_for_a_moment_costs_a_renewal_and_not_the_lock() {
    let server = PrivateRedis::start();
    let ttl = Duration::from_secs(6);
    let locks = locks(&server, ttl / 6);
    let mut held = guard(locks.acquire(request(&key(), "a", ttl), Terms::new(100, ttl / 6)).await.unwrap());
    // There is no master at that address, so it keeps its keys.
    server.call(&["REPLICAOF", "127.0.0.1", "1"]);
    wait_for("a renewal to be refused", async || {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let failed = held.report().renewals_failed;
        if failed > 0 { Ok(()) } else { Err(failed) }
    })
    .await;
    server.promote();
    tokio::select! {
        loss = held.lost() => panic!("lost: {loss:?}"),
        () = wait_for("a renewal to be acknowledged", async || {
            tokio::time::sleep(Duration::from_millis(10)).await;
            let left = left_on(&server);
            if left > 4_500 { Ok(()) } else { Err(left) }
        }) => {}
    }
    assert!(held.report().renewals_ok > 0);
    assert!(held.lease().trusted_until() > SystemBootClock.boot_now());
    assert_eq!(held.release(None).await.outcome.unwrap(), ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_server_that_refuses_a_request_keeps_its_connection() {
    let server = PrivateRedis::start();
    let proxy = Proxy::to(server.addr()).await;
    let options = OpenOptions::new(Handle::current(), Handle::current()).timeout(Duration::from_secs(5));
    let backend = lockcore::open(&proxy.url(), options).unwrap();
    server.call(&["RPUSH", &key().lock(), "no string"]);
    let asked = request(&key(), "a", Duration::from_secs(300));
    for _ in 0..3 {
        backend.acquire(&asked).await.unwrap_err();
    }
    server.call(&["DEL", &key().lock()]);
    assert_eq!(backend.acquire(&asked).await.unwrap(), lockcore::AcquireOutcome::Acquired);
    assert_eq!(proxy.opened(), 1);
}

/// In how many milliseconds the lock expires, as the server says.
fn left_on(server: &PrivateRedis) -> i64 {
    server.call(&["PTTL", &key().lock()]).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn thousands_of_locks_that_are_released_or_dropped_leave_no_renewal_behind() {
    let server = PrivateRedis::start();
    // Renewed each 100 ms: a keep-alive that is left over would keep its key alive.
    let ttl = Duration::from_millis(300);
    let locks = locks(&server, Duration::from_secs(5));
    let terms = Terms::new(1_000, Duration::ZERO);
    for number in 0..3_000_u32 {
        let key = key().shard(number % 500);
        let acquire = locks.acquire(request(&key, "a", ttl), terms);
        match number % 10 {
            // The caller goes away between the request and its answer.
            3 => drop(tokio::time::timeout(Duration::from_micros(30), acquire).await),
            // The work panics, or its task is ended.
            7 => drop(acquire.await),
            _ => {
                if let Ok(Acquisition::Acquired(guard)) = acquire.await {
                    guard.release(None).await.outcome.unwrap();
                }
            }
        }
    }
    wait_for("every key to be gone", async || {
        tokio::time::sleep(Duration::from_millis(50)).await;
        match server.call(&["DBSIZE"]).as_deref() {
            Some("0") => Ok(()),
            left => Err(left.map(str::to_owned)),
        }
    })
    .await;
    let clients = server.call(&["CLIENT", "LIST"]).unwrap().lines().count();
    assert!(clients <= 3, "{clients} connections, of which one is this question's");
    // A loss is still reported.
    let mut held = guard(locks.acquire(request(&key(), "a", ttl), terms).await.unwrap());
    server.flushall();
    while held.lost().await != Loss::NotMine {}
}
