//! Taking a lock from a server that fails when told to, in paused time.

use std::sync::Arc;
use std::time::Duration;

use lockcore::{AcquireRequest, Acquisition, BootClock, Holder, LockError, Terms};
use tokio::time::timeout;

use crate::scripted::{Fate, Scene};
use crate::support::{guard, is_free, key, request, wait_for};

const TTL: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_millis(500);

impl Scene {
    async fn acquire(&self, max_wait: Duration) -> Result<Acquisition, LockError> {
        self.locks.acquire(request(&key(), "a", TTL), terms().max_wait(max_wait)).await
    }

    /// Someone else holds the lock for `ttl`.
    async fn occupy(&self, ttl: Duration) -> AcquireRequest {
        let other = request(&key(), "other", ttl);
        self.server.table.acquire(&other).await.unwrap();
        other
    }

    async fn freed(&self) {
        wait_for("the lock to be free", async || {
            if is_free(&*self.server.table, &key()).await { Ok(()) } else { Err("held") }
        })
        .await;
    }
}

fn terms() -> Terms {
    Terms::new(3, Duration::from_secs(5))
}

#[tokio::test(start_paused = true)]
async fn a_held_lock_is_an_answer_that_names_its_holder() {
    let scene = Scene::new();
    scene.occupy(Duration::from_secs(7)).await;
    match scene.acquire(Duration::ZERO).await.unwrap() {
        Acquisition::Held { holder, remaining } => {
            assert_eq!(holder, Holder::from_value("other|2026-06-01T12:00:00Z|x"));
            assert_eq!(remaining, Some(Duration::from_secs(7)));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(scene.server.acquires.calls(), 1, "no wait, no second try");
}

#[tokio::test(start_paused = true)]
async fn a_wait_goes_on_until_the_holder_releases() {
    let scene = Scene::new();
    scene.occupy(Duration::from_secs(7)).await;
    let start = scene.clock.boot_now();
    let acquisition = scene.acquire(Duration::from_secs(20)).await.unwrap();
    assert!(matches!(acquisition, Acquisition::Acquired(_)), "{acquisition:?}");
    let waited = scene.clock.boot_now().saturating_since(start);
    assert!((7..=8).contains(&waited.as_secs()), "found the free lock after {waited:?}");
    let calls = scene.server.acquires.calls();
    assert!((8..60).contains(&calls), "{calls} tries in 7 s");
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_with_a_last_try() {
    let scene = Scene::new();
    scene.occupy(Duration::from_secs(600)).await;
    let start = scene.clock.boot_now();
    let acquisition = scene.acquire(Duration::from_secs(20)).await.unwrap();
    assert!(matches!(acquisition, Acquisition::Held { .. }), "{acquisition:?}");
    let waited = scene.clock.boot_now().saturating_since(start);
    assert_eq!(waited.as_secs(), 20);
}

#[tokio::test(start_paused = true)]
async fn a_lost_reply_is_resolved_with_the_same_token_and_trusted_from_the_first_send() {
    let scene = Scene::new();
    scene.server.acquires.next([Fate::ReplyLost(TIMEOUT)]);
    let first_send = scene.clock.boot_now();
    let asked = request(&key(), "a", TTL);
    let guard = guard(scene.locks.acquire(asked.clone(), terms()).await.unwrap());
    assert_eq!(guard.token(), &asked.token);
    assert_eq!(guard.lease().granted_at(), first_send);
    assert_eq!(scene.server.acquires.calls(), 2);
    assert_eq!(scene.server.releases.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_is_asked_once_more() {
    let scene = Scene::new();
    scene.server.acquires.all(Fate::Refused);
    let start = scene.clock.boot_now();
    scene.acquire(Duration::ZERO).await.unwrap_err();
    assert_eq!(scene.server.acquires.calls(), 2);
    assert!(scene.clock.boot_now().saturating_since(start) < Duration::from_millis(50));
}

#[tokio::test(start_paused = true)]
async fn a_token_that_may_have_taken_the_lock_is_released_in_the_end() {
    let scene = Scene::new();
    scene.server.acquires.all(Fate::ReplyLost(TIMEOUT));
    scene.server.releases.next([Fate::Refused, Fate::Refused]);
    scene.acquire(Duration::ZERO).await.unwrap_err();
    assert!(!is_free(&*scene.server.table, &key()).await);
    scene.freed().await;
    assert_eq!(scene.server.releases.calls(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_background_release_ends_after_one_ttl() {
    let scene = Scene::new();
    scene.server.acquires.all(Fate::ReplyLost(TIMEOUT));
    scene.server.releases.all(Fate::Refused);
    scene.acquire(Duration::ZERO).await.unwrap_err();
    tokio::time::sleep(TTL + Duration::from_secs(3)).await;
    let calls = scene.server.releases.calls();
    assert!((5..100).contains(&calls), "{calls} releases in 30 s");
    tokio::time::sleep(TTL * 10).await;
    assert_eq!(scene.server.releases.calls(), calls);
}

#[tokio::test(start_paused = true)]
async fn a_background_release_ends_even_if_the_server_hangs() {
    let scene = Scene::new();
    scene.server.acquires.all(Fate::ReplyLost(TIMEOUT));
    scene.server.releases.all(Fate::Hangs);
    let idle = Arc::strong_count(&scene.server);
    scene.acquire(Duration::ZERO).await.unwrap_err();
    assert_eq!(Arc::strong_count(&scene.server), idle + 1, "the release has the server");
    tokio::time::sleep(TTL + TIMEOUT).await;
    assert_eq!(Arc::strong_count(&scene.server), idle);
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_that_is_dropped_midway_is_released() {
    let scene = Scene::new();
    scene.server.acquires.all(Fate::Hangs);
    assert!(timeout(TIMEOUT, scene.acquire(TTL)).await.is_err());
    assert!(!is_free(&*scene.server.table, &key()).await, "the server did carry it out");
    scene.freed().await;
}

#[tokio::test(start_paused = true)]
async fn an_acquisition_that_is_dropped_while_it_waits_for_a_holder_releases_nothing() {
    let scene = Scene::new();
    scene.occupy(TTL).await;
    assert!(timeout(TIMEOUT, scene.acquire(TTL)).await.is_err());
    tokio::time::sleep(TTL).await;
    assert_eq!(scene.server.releases.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_reply_that_comes_after_the_end_of_trust_is_not_a_lock() {
    let scene = Scene::new();
    scene.server.acquires.next([Fate::Late(TTL)]);
    let start = scene.clock.boot_now();
    scene.acquire(Duration::ZERO).await.unwrap_err();
    assert!(scene.clock.boot_now().saturating_since(start) < TTL, "no use in waiting longer");
    assert_eq!(scene.server.acquires.calls(), 1);
    scene.freed().await;
    assert_eq!(scene.server.releases.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_suspend_between_send_and_reply_spoils_the_lock() {
    let scene = Scene::new();
    scene.server.acquires.next([Fate::Late(Duration::from_millis(600))]);
    let suspend = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        scene.clock.suspend(Duration::from_secs(60));
    };
    let (acquisition, ()) = tokio::join!(scene.acquire(Duration::ZERO), suspend);
    acquisition.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_wait_goes_on_while_the_server_is_unreachable() {
    let scene = Scene::new();
    scene.server.acquires.all(Fate::Refused);
    let heal = async {
        tokio::time::sleep(Duration::from_secs(9)).await;
        scene.server.acquires.all(Fate::Answered);
    };
    let (acquisition, ()) = tokio::join!(scene.acquire(Duration::from_secs(20)), heal);
    let acquisition = acquisition.unwrap();
    assert!(matches!(acquisition, Acquisition::Acquired(_)), "{acquisition:?}");
    let calls = scene.server.acquires.calls();
    assert!((9..60).contains(&calls), "{calls} tries in 9 s");
}

#[tokio::test(start_paused = true)]
async fn a_wait_longer_than_the_ttl_goes_on_with_a_new_token() {
    let scene = Scene::new();
    scene.server.acquires.all(Fate::ReplyLost(TIMEOUT));
    let heal = async {
        tokio::time::sleep(TTL * 2).await;
        scene.server.acquires.all(Fate::Answered);
    };
    let asked = request(&key(), "a", TTL);
    let acquire = scene.locks.acquire(asked.clone(), terms().max_wait(TTL * 4));
    let guard = guard(tokio::join!(acquire, heal).0.unwrap());
    assert_ne!(guard.token(), &asked.token);
    let (ours, first) = (guard.token().as_str(), asked.token.as_str());
    assert_eq!(Holder::from_value(ours), Holder::from_value(first));
    assert!(guard.lease().trusted_until() > scene.clock.boot_now());
}

#[tokio::test(start_paused = true)]
async fn work_that_is_done_is_not_waited_for() {
    let scene = Scene::new();
    let other = scene.occupy(TTL).await;
    let done = lockcore::DoneMark::new("noon", TTL);
    scene.server.table.release(&key(), &other.token, Some(&done)).await.unwrap();
    let mut asked = request(&key(), "a", TTL);
    asked.unless_done = Some("noon".into());
    let acquisition = scene.locks.acquire(asked, terms().max_wait(TTL)).await.unwrap();
    assert!(matches!(acquisition, Acquisition::Done), "{acquisition:?}");
    assert_eq!(scene.server.acquires.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn dropping_the_locks_ends_their_background_releases() {
    let Scene { server, locks, .. } = Scene::new();
    server.acquires.all(Fate::ReplyLost(TIMEOUT));
    server.releases.all(Fate::Refused);
    locks.acquire(request(&key(), "a", TTL), terms()).await.unwrap_err();
    drop(locks);
    tokio::task::yield_now().await;
    let calls = server.releases.calls();
    tokio::time::sleep(TTL).await;
    assert_eq!(server.releases.calls(), calls);
}
