//! What can happen to a lock when the Redis server or the network fails.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use lockcore::{
    AcquireOutcome, BootClock, LockBackend, LockError, Locks, Loss, OpenOptions, ReleaseOutcome,
    RenewOutcome, SystemBootClock, Terms,
};
use testbed::PrivateRedis;
use tokio::runtime::Handle;

use crate::proxy::Proxy;
use crate::support::{guard, key, now, request, wait_for};

const LONG: Duration = Duration::from_secs(300);

fn backend(url: &str, timeout: Duration) -> Arc<dyn LockBackend> {
    let options = OpenOptions::new(Handle::current(), Handle::current()).timeout(timeout);
    lockcore::open(url, options).unwrap()
}

/// A long timeout, for tests in which no reply is lost: on a busy machine replies may take long.
fn patient(url: &str) -> Arc<dyn LockBackend> {
    backend(url, Duration::from_secs(5))
}

/// A short timeout, for tests in which replies are lost.
fn quick(url: &str) -> Arc<dyn LockBackend> {
    backend(url, Duration::from_millis(300))
}

fn locks(backend: Arc<dyn LockBackend>) -> Locks {
    Locks::new(backend, Arc::new(SystemBootClock), Handle::current())
}

async fn acquire(backend: &dyn LockBackend) -> Result<AcquireOutcome, LockError> {
    backend.acquire(&request(&key(), "a", LONG)).await
}

/// The error and its causes.
fn chain(error: &LockError) -> String {
    let mut text = format!("{error} {error:?}");
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(&format!(": {error} {error:?}"));
        cause = error.source();
    }
    text
}

#[tokio::test]
async fn set_nx_px_is_the_only_write_of_an_acquisition() {
    let server = PrivateRedis::start();
    assert_eq!(acquire(&*patient(&server.url())).await.unwrap(), AcquireOutcome::Acquired);
    let stats = server.call(&["INFO", "commandstats"]).unwrap();
    assert!(stats.contains("cmdstat_set:calls=1,"), "{stats}");
    for other in ["cmdstat_setnx", "cmdstat_expire", "cmdstat_pexpire", "cmdstat_setex"] {
        assert!(!stats.contains(other), "{stats}");
    }
    let left: i64 = server.call(&["PTTL", &key().lock()]).unwrap().parse().unwrap();
    assert!((1..=300_000).contains(&left), "{left}");
}

#[tokio::test]
async fn the_lock_can_be_read_in_redis() {
    let server = PrivateRedis::start();
    let asked = request(&key(), "web-1", LONG);
    patient(&server.url()).acquire(&asked).await.unwrap();
    let value = server.call(&["GET", "{test:default/job}:lock"]).unwrap();
    assert_eq!(value, asked.token.as_str());
    assert!(value.starts_with("web-1|2026-06-01T12:00:00Z|"), "{value}");
}

#[tokio::test]
async fn a_key_that_was_set_by_hand_without_expiry_is_held_for_ever() {
    let server = PrivateRedis::start();
    server.call(&["SET", &key().lock(), "maintenance"]);
    match acquire(&*patient(&server.url())).await.unwrap() {
        AcquireOutcome::Held { holder, remaining } => {
            assert_eq!(holder.instance, "maintenance");
            assert_eq!(remaining, None);
        }
        other => panic!("{other:?}"),
    }
    server.call(&["EVAL", "redis.call('SET', KEYS[1], '\\255')", "1", &key().lock()]);
    let outcome = acquire(&*patient(&server.url())).await.unwrap();
    assert!(matches!(outcome, AcquireOutcome::Held { .. }), "{outcome:?}");
}

#[tokio::test]
async fn renewals_have_a_connection_of_their_own() {
    let server = PrivateRedis::start();
    let proxy = Proxy::to(server.addr()).await;
    let backend = patient(&proxy.url());
    assert_eq!(proxy.opened(), 0, "a backend connects at first use");
    let mine = request(&key(), "a", LONG);
    backend.acquire(&mine).await.unwrap();
    assert_eq!(proxy.opened(), 1);
    assert_eq!(backend.renew(&key(), &mine.token, LONG).await.unwrap(), RenewOutcome::Renewed);
    assert_eq!(proxy.opened(), 2);
    backend.release(&key(), &mine.token, None).await.unwrap();
    assert_eq!(proxy.opened(), 2);
}

#[test]
fn connections_live_on_the_runtimes_they_were_given() {
    let runtime =
        || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let server = PrivateRedis::start();
    let (network, engine) = (runtime(), runtime());
    let proxy = network.block_on(Proxy::to(server.addr()));
    let options = OpenOptions::new(engine.handle().clone(), engine.handle().clone());
    let backend = lockcore::open(&proxy.url(), options.timeout(Duration::from_secs(5))).unwrap();
    let mine = request(&key(), "a", LONG);
    // The connections do not depend on the runtime that made the first call. It ends here.
    for _ in 0..3 {
        let caller = tokio::runtime::Builder::new_current_thread().build().unwrap();
        caller.block_on(async {
            assert_eq!(backend.acquire(&mine).await.unwrap(), AcquireOutcome::Acquired);
            assert_eq!(backend.renew(&key(), &mine.token, LONG).await.unwrap(), RenewOutcome::Renewed);
        });
    }
    assert_eq!(proxy.opened(), 2);
}

#[tokio::test]
async fn scripts_that_the_server_forgot_are_sent_again() {
    let server = PrivateRedis::start();
    let backend = patient(&server.url());
    let mine = request(&key(), "a", LONG);
    assert_eq!(backend.acquire(&mine).await.unwrap(), AcquireOutcome::Acquired);
    for _ in 0..2 {
        server.call(&["SCRIPT", "FLUSH"]);
        assert_eq!(backend.acquire(&mine).await.unwrap(), AcquireOutcome::Acquired);
        assert_eq!(backend.renew(&key(), &mine.token, LONG).await.unwrap(), RenewOutcome::Renewed);
    }
    server.call(&["SCRIPT", "FLUSH"]);
    let released = backend.release(&key(), &mine.token, None).await.unwrap();
    assert_eq!(released, ReleaseOutcome::Released);
}

#[tokio::test]
async fn a_backend_starts_while_its_server_is_down() {
    let server = PrivateRedis::start();
    server.kill();
    let backend = patient(&server.url());
    let start = now();
    acquire(&*backend).await.unwrap_err();
    assert!(now() - start < Duration::from_secs(2), "a refused connection is an answer, not a wait");
    server.restart();
    assert_eq!(acquire(&*backend).await.unwrap(), AcquireOutcome::Acquired);
}

// On several threads, so that whatever the client does in the background is done before the restart.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_server_serves_the_first_call_after_its_restart() {
    let server = PrivateRedis::start();
    let backend = patient(&server.url());
    for _ in 0..3 {
        assert_eq!(acquire(&*backend).await.unwrap(), AcquireOutcome::Acquired);
        server.kill();
        acquire(&*backend).await.unwrap_err();
        acquire(&*backend).await.unwrap_err();
        server.restart();
    }
    assert_eq!(acquire(&*backend).await.unwrap(), AcquireOutcome::Acquired);
}

#[tokio::test]
async fn a_restart_between_two_calls_is_not_noticed_by_locks() {
    let server = PrivateRedis::start();
    let locks = locks(patient(&server.url()));
    let terms = Terms::new(3, Duration::ZERO);
    for _ in 0..3 {
        drop(guard(locks.acquire(request(&key(), "a", LONG), terms).await.unwrap()));
        server.restart();
    }
}

#[tokio::test]
async fn a_flushed_lock_is_told_as_not_mine() {
    let server = PrivateRedis::start();
    let locks = locks(patient(&server.url()));
    let ttl = Duration::from_millis(1_500);
    let terms = Terms::new(100, Duration::ZERO);
    let mut guard = guard(locks.acquire(request(&key(), "a", ttl), terms).await.unwrap());
    server.flushall();
    while guard.lost().await != Loss::NotMine {}
    assert_eq!(guard.release(None).await.outcome.unwrap(), ReleaseOutcome::NotMine);
}

#[tokio::test]
async fn a_server_that_dies_is_unreachable_and_says_not_mine_when_it_returns() {
    let server = PrivateRedis::start();
    let ttl = Duration::from_millis(1_500);
    let locks = locks(backend(&server.url(), ttl / 6));
    let mut guard =
        guard(locks.acquire(request(&key(), "a", ttl), Terms::new(1_000, ttl / 6)).await.unwrap());
    server.kill();
    assert_eq!(guard.lost().await, Loss::Unreachable);
    server.restart();
    assert_eq!(guard.lost().await, Loss::NotMine);
}

#[tokio::test]
async fn a_frozen_server_costs_the_trust_and_goes_on_serving() {
    let server = PrivateRedis::start();
    let ttl = Duration::from_millis(1_500);
    let backend = backend(&server.url(), ttl / 6);
    let locks = locks(backend.clone());
    let mut guard =
        guard(locks.acquire(request(&key(), "a", ttl), Terms::new(1_000, Duration::ZERO)).await.unwrap());
    let trusted_until = guard.lease().trusted_until();
    server.stop();
    assert_eq!(guard.lost().await, Loss::Unreachable);
    assert!(SystemBootClock.boot_now() >= trusted_until);
    acquire(&*backend).await.unwrap_err();
    server.cont();
    // The key has expired or is about to: the server either says so or renews it.
    loop {
        tokio::select! {
            loss = guard.lost() => if loss == Loss::NotMine { break },
            () = tokio::time::sleep(Duration::from_millis(20)) => {
                if guard.lease().trusted_until() > SystemBootClock.boot_now() { break }
            }
        }
    }
    wait_for("an answer", async || acquire(&*backend).await.map_err(|error| chain(&error))).await;
}

#[tokio::test]
async fn an_acquisition_whose_reply_was_lost_is_ours_from_its_first_send() {
    let server = PrivateRedis::start();
    let proxy = Proxy::to(server.addr()).await;
    let backend = quick(&proxy.url());
    backend.release(&key(), &request(&key(), "warm-up", LONG).token, None).await.unwrap();
    acquire_and_forget(&*backend).await;

    let asked = request(&key(), "a", LONG);
    let before = SystemBootClock.boot_now();
    proxy.swallow_replies(1);
    let held = guard(locks(backend).acquire(asked.clone(), Terms::new(3, Duration::ZERO)).await.unwrap());
    let after = SystemBootClock.boot_now();
    assert_eq!(held.token(), &asked.token);
    let since_send = after.saturating_since(held.lease().granted_at());
    assert!(held.lease().granted_at() >= before);
    assert!(since_send >= Duration::from_millis(300), "trust counts from the send that timed out");
    assert_eq!(server.call(&["GET", &key().lock()]).as_deref(), Some(asked.token.as_str()));
}

/// Lets the server load the scripts, so that each later request has exactly one reply.
async fn acquire_and_forget(backend: &dyn LockBackend) {
    let mine = request(&key().shard(99), "warm-up", LONG);
    backend.acquire(&mine).await.unwrap();
    backend.release(&mine.key, &mine.token, None).await.unwrap();
}

#[tokio::test]
async fn a_lock_that_nobody_learned_of_is_released_in_the_end() {
    let server = PrivateRedis::start();
    let proxy = Proxy::to(server.addr()).await;
    let backend = quick(&proxy.url());
    acquire_and_forget(&*backend).await;
    let locks = locks(backend);
    proxy.swallow_replies(usize::MAX);
    locks.acquire(request(&key(), "a", LONG), Terms::new(3, Duration::ZERO)).await.unwrap_err();
    proxy.swallow_replies(0);
    wait_for("the lock to be released", async || match server.call(&["GET", &key().lock()]) {
        None => Ok(()),
        Some(holder) => {
            tokio::task::yield_now().await;
            Err(holder)
        }
    })
    .await;
}

#[tokio::test]
async fn a_release_whose_reply_was_lost_is_no_mismatch() {
    let server = PrivateRedis::start();
    let proxy = Proxy::to(server.addr()).await;
    let backend = quick(&proxy.url());
    acquire_and_forget(&*backend).await;
    let held = locks(backend).acquire(request(&key(), "a", LONG), Terms::new(3, Duration::ZERO)).await;
    let held = guard(held.unwrap());
    proxy.swallow_replies(1);
    assert_eq!(held.release(None).await.outcome.unwrap(), ReleaseOutcome::Released);
    assert_eq!(server.call(&["DBSIZE"]).as_deref(), Some("0"));
}

#[tokio::test]
async fn a_dead_path_is_left_after_one_timeout() {
    let server = PrivateRedis::start();
    let proxy = Proxy::to(server.addr()).await;
    let backend = quick(&proxy.url());
    let mine = request(&key(), "a", LONG);
    backend.acquire(&mine).await.unwrap();
    backend.renew(&key(), &mine.token, LONG).await.unwrap();
    proxy.deaden();
    backend.acquire(&mine).await.unwrap_err();
    backend.renew(&key(), &mine.token, LONG).await.unwrap_err();
    wait_for("a new connection to serve", async || {
        backend.acquire(&mine).await.map_err(|error| chain(&error))?;
        backend.renew(&key(), &mine.token, LONG).await.map_err(|error| chain(&error))
    })
    .await;
    assert!(proxy.opened() <= 8, "{} connections", proxy.opened());
}

#[tokio::test]
async fn a_server_that_became_a_replica_is_left_for_the_new_master() {
    let (old, new) = (PrivateRedis::start(), PrivateRedis::start());
    let proxy = Proxy::to(old.addr()).await;
    let backend = patient(&proxy.url());
    let mine = request(&key(), "a", LONG);
    backend.acquire(&mine).await.unwrap();
    backend.renew(&key(), &mine.token, LONG).await.unwrap();

    let port = new.addr().port().to_string();
    old.call(&["REPLICAOF", "127.0.0.1", &port]);
    // The full resynchronisation empties the old master: from then on it refuses instead of saying "held".
    let refusal = wait_for("the old master to refuse", async || match acquire(&*backend).await {
        Err(error) => Ok(chain(&error)),
        Ok(outcome) => Err(outcome),
    })
    .await;
    assert!(!refusal.is_empty());
    proxy.move_to(new.addr());
    wait_for("the new master to serve", async || match acquire(&*backend).await {
        Ok(AcquireOutcome::Acquired) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await;
    assert!(new.call(&["GET", &key().lock()]).is_some());
}

#[tokio::test]
async fn a_lock_server_out_of_memory_still_releases() {
    let server = PrivateRedis::start();
    let backend = patient(&server.url());
    let mine = request(&key(), "a", LONG);
    backend.acquire(&mine).await.unwrap();
    server.call(&["CONFIG", "SET", "maxmemory", "1"]);
    acquire(&*backend).await.map(|outcome| assert!(matches!(outcome, AcquireOutcome::Held { .. }))).ok();
    assert_eq!(backend.renew(&key(), &mine.token, LONG).await.unwrap(), RenewOutcome::Renewed);
    let done = lockcore::DoneMark::new("noon", LONG);
    let released = backend.release(&key(), &mine.token, Some(&done)).await.unwrap();
    assert_eq!(released, ReleaseOutcome::Released);
    assert!(chain(&acquire(&*backend).await.unwrap_err()).contains("OOM"));
}

#[tokio::test]
async fn no_error_shows_the_password() {
    let server = PrivateRedis::start();
    let url = |password| server.url().replace("redis://", &format!("redis://:{password}@"));
    // This server has no password, the next no AUTH: both repeat what they were sent, or may.
    let unexpected = acquire(&*patient(&url("hunter2"))).await.unwrap_err();
    server.call(&["CONFIG", "SET", "requirepass", "correct horse"]);
    let wrong = acquire(&*patient(&url("hunter2"))).await.unwrap_err();
    for error in [unexpected, wrong] {
        assert!(!chain(&error).contains("hunter2"), "{}", chain(&error));
    }
}

#[cfg(feature = "tls")]
#[tokio::test]
async fn a_tls_url_never_speaks_plainly() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let backend = patient(&format!("rediss://localhost:{}", listener.local_addr().unwrap().port()));
    let server = async {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut start = [0; 3];
        client.read_exact(&mut start).await.unwrap();
        client.write_all(b"-ERR this server speaks no TLS\r\n").await.unwrap();
        start
    };
    let (outcome, start) = tokio::join!(acquire(&*backend), server);
    assert_eq!(start[..2], [22, 3], "a TLS handshake");
    outcome.unwrap_err();
}
