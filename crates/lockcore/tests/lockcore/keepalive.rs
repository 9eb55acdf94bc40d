//! The keep-alive and its guard, in paused time, with a server that fails when told to.

use std::sync::Arc;
use std::time::Duration;

use lockcore::{BootClock, BootInstant, DoneMark, Lease, LeaseGuard, Locks, Loss, ReleaseOutcome, Terms};
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::scripted::{Fate, Scripted};
use crate::support::{ManualClock, RuntimeClock, guard, is_free, key, request};

const TTL: Duration = Duration::from_secs(30);
const NOTICE: Duration = Duration::from_secs(5);

/// A lock taken at `start`, with what a test needs to watch and disturb it.
struct Scene {
    clock: Arc<RuntimeClock>,
    server: Arc<Scripted>,
    start: BootInstant,
    guard: LeaseGuard,
}

impl Scene {
    async fn with_cap(max_renewals: u32) -> Self {
        let clock = Arc::new(RuntimeClock::new());
        let server = Scripted::new(clock.clone());
        let locks = Locks::new(server.clone(), clock.clone(), Handle::current());
        let start = clock.boot_now();
        let terms = Terms::new(max_renewals, NOTICE);
        let guard = guard(locks.acquire(request(&key(), "a", TTL), terms).await.unwrap());
        Self { clock, server, start, guard }
    }

    fn elapsed(&self) -> Duration {
        self.clock.boot_now().saturating_since(self.start)
    }

    async fn take_away(&self) {
        self.server.table.release(&key(), self.guard.token(), None).await.unwrap();
        self.server.table.acquire(&request(&key(), "other", TTL)).await.unwrap();
    }
}

/// Asserts that `found` is `expected`, up to what the runtime's timers round up.
#[track_caller]
fn assert_about(found: Duration, expected: Duration) {
    let late = found.saturating_sub(expected);
    assert!(found >= expected && late < Duration::from_millis(20), "{found:?} is not {expected:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lock_is_renewed_every_third_of_its_ttl_until_the_cap() {
    let mut scene = Scene::with_cap(3).await;
    assert_eq!(scene.guard.lost().await, Loss::Cap);
    assert_about(scene.elapsed(), Lease::longest_life(TTL, 3) - Lease::margin(TTL) - NOTICE);
    assert_eq!(scene.server.renewals.calls(), 3);
    let report = scene.guard.report();
    assert_eq!((report.renewals_ok, report.renewals_failed, report.cap_reached), (3, 0, true));
}

#[tokio::test(start_paused = true)]
async fn a_cap_of_nothing_leaves_one_ttl() {
    let mut scene = Scene::with_cap(0).await;
    assert_eq!(scene.guard.lost().await, Loss::Cap);
    assert_about(scene.elapsed(), TTL - Lease::margin(TTL) - NOTICE);
    assert_eq!(scene.server.renewals.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_reached_its_cap_expires() {
    let mut scene = Scene::with_cap(1).await;
    assert_eq!(scene.guard.lost().await, Loss::Cap);
    let left = scene.guard.lease().life_ends().saturating_since(scene.clock.boot_now());
    tokio::time::sleep(left + Duration::from_millis(5)).await;
    assert!(is_free(&*scene.server.table, &key()).await);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_someone_took_is_reported_at_the_next_renewal() {
    let mut scene = Scene::with_cap(100).await;
    scene.take_away().await;
    assert_eq!(scene.guard.lost().await, Loss::NotMine);
    assert_about(scene.elapsed(), TTL / 3);
}

#[tokio::test(start_paused = true)]
async fn an_unreachable_server_is_told_the_notice_before_trust_ends() {
    let mut scene = Scene::with_cap(100).await;
    scene.server.renewals.all(Fate::Refused);
    assert_eq!(scene.guard.lost().await, Loss::Unreachable);
    assert_about(scene.elapsed(), TTL - Lease::margin(TTL) - NOTICE);
}

#[tokio::test(start_paused = true)]
async fn a_notice_longer_than_a_third_of_the_ttl_counts_as_a_third() {
    let clock = Arc::new(RuntimeClock::new());
    let server = Scripted::new(clock.clone());
    let locks = Locks::new(server, clock.clone(), Handle::current());
    let start = clock.boot_now();
    let terms = Terms::new(0, TTL * 10);
    let mut guard = guard(locks.acquire(request(&key(), "a", TTL), terms).await.unwrap());
    assert_eq!(guard.lost().await, Loss::Cap);
    assert_about(clock.boot_now().saturating_since(start), TTL - Lease::margin(TTL) - TTL / 3);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_hangs_does_not_delay_the_report() {
    let mut scene = Scene::with_cap(100).await;
    scene.server.renewals.next([Fate::Answered]);
    scene.server.renewals.next([Fate::Hangs; 1000]);
    assert_eq!(scene.guard.lost().await, Loss::Unreachable);
    // The first hanging renewal was carried out at 20 s, but nobody knows.
    assert_about(scene.elapsed(), TTL / 3 + TTL - Lease::margin(TTL) - NOTICE);
}

#[tokio::test(start_paused = true)]
async fn failed_renewals_are_retried_soon_but_not_in_a_hot_loop() {
    let mut scene = Scene::with_cap(100).await;
    scene.server.renewals.all(Fate::Refused);
    assert_eq!(scene.guard.lost().await, Loss::Unreachable);
    let calls = scene.server.renewals.calls();
    assert!((4..60).contains(&calls), "{calls} renewals in the 15 s from the first failure to the loss");
    assert_eq!(scene.guard.report().renewals_failed as usize, calls);
}

#[tokio::test(start_paused = true)]
async fn a_renewal_without_an_answer_is_given_up_after_a_third_of_the_ttl() {
    let scene = Scene::with_cap(100).await;
    scene.server.renewals.next([Fate::Hangs]);
    tokio::time::sleep(TTL / 3 * 2 + Duration::from_secs(1)).await;
    let report = scene.guard.report();
    assert_eq!((report.renewals_failed, report.renewals_ok), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn one_failed_renewal_loses_nothing() {
    let mut scene = Scene::with_cap(3).await;
    scene.server.renewals.next([Fate::Refused, Fate::ReplyLost(Duration::from_millis(500))]);
    assert_eq!(scene.guard.lost().await, Loss::Cap);
    let report = scene.guard.report();
    assert_eq!((report.renewals_ok, report.renewals_failed), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn trust_returns_when_the_server_does_and_the_lock_is_still_ours() {
    let mut scene = Scene::with_cap(100).await;
    scene.server.renewals.all(Fate::Refused);
    assert_eq!(scene.guard.lost().await, Loss::Unreachable);
    scene.server.renewals.all(Fate::Answered);
    let next = timeout(TTL * 10, scene.guard.lost()).await;
    assert!(next.is_err(), "{next:?} for a lock that was renewed");
    assert!(scene.guard.lease().trusted_until() > scene.clock.boot_now());
}

#[tokio::test(start_paused = true)]
async fn each_loss_of_trust_is_told() {
    let mut scene = Scene::with_cap(100).await;
    for _ in 0..3 {
        scene.server.renewals.all(Fate::Refused);
        assert_eq!(scene.guard.lost().await, Loss::Unreachable);
        scene.server.renewals.all(Fate::Answered);
        let renewed = scene.guard.lease().renewals() + 1;
        while scene.guard.lease().renewals() < renewed {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_returns_after_unreachable_says_not_mine() {
    let mut scene = Scene::with_cap(100).await;
    scene.server.renewals.all(Fate::Refused);
    assert_eq!(scene.guard.lost().await, Loss::Unreachable);
    scene.take_away().await;
    scene.server.renewals.all(Fate::Answered);
    assert_eq!(scene.guard.lost().await, Loss::NotMine);
}

#[tokio::test(start_paused = true)]
async fn the_cap_is_reported_even_if_the_server_never_returns() {
    let mut scene = Scene::with_cap(3).await;
    scene.server.renewals.all(Fate::Refused);
    assert_eq!(scene.guard.lost().await, Loss::Unreachable);
    assert_eq!(scene.guard.lost().await, Loss::Cap);
    assert!(scene.elapsed() >= Lease::longest_life(TTL, 3));
    let calls = scene.server.renewals.calls();
    tokio::time::sleep(TTL * 10).await;
    assert_eq!(scene.server.renewals.calls(), calls, "renewals go on after the cap");
}

#[tokio::test(start_paused = true)]
async fn renewals_whose_replies_are_lost_do_not_prolong_a_lock_beyond_its_cap() {
    let mut scene = Scene::with_cap(3).await;
    scene.server.renewals.all(Fate::ReplyLost(Duration::from_millis(500)));
    assert_eq!(scene.guard.lost().await, Loss::Unreachable);
    let life = Lease::longest_life(TTL, 3);
    tokio::time::sleep(life - scene.elapsed() - Duration::from_secs(1)).await;
    assert!(!is_free(&*scene.server.table, &key()).await, "the lost replies did renew it");
    tokio::time::sleep(Duration::from_millis(1_010)).await;
    assert!(is_free(&*scene.server.table, &key()).await);
}

#[tokio::test(start_paused = true)]
async fn after_a_suspend_past_trust_the_loss_is_told_without_asking_the_server() {
    let mut scene = Scene::with_cap(100).await;
    scene.server.renewals.all(Fate::Hangs);
    // The keep-alive sleeps by now, until a moment that the runtime's timers will reach much too late.
    tokio::time::sleep(Duration::from_millis(100)).await;
    scene.clock.suspend(Duration::from_secs(3_600));
    let awake = scene.elapsed();
    assert_eq!(scene.guard.lost().await, Loss::Unreachable);
    assert!(scene.elapsed() - awake <= Duration::from_millis(1_005), "the clock is read every second");
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_someone_took_during_a_suspend_is_reported() {
    let mut scene = Scene::with_cap(1_000).await;
    scene.clock.suspend(Duration::from_secs(3_600));
    scene.server.table.acquire(&request(&key(), "other", TTL * 10)).await.unwrap();
    assert_eq!(scene.guard.lost().await, Loss::Unreachable);
    assert_eq!(scene.guard.lost().await, Loss::NotMine);
}

#[tokio::test(start_paused = true)]
async fn a_reply_from_before_a_suspend_does_not_bring_trust_back() {
    let mut scene = Scene::with_cap(1_000).await;
    scene.server.renewals.next([Fate::Late(Duration::from_secs(1))]);
    scene.server.renewals.next([Fate::Hangs; 10]);
    tokio::time::sleep(TTL / 3 + Duration::from_millis(500)).await;
    scene.clock.suspend(Duration::from_secs(60));
    assert_eq!(scene.guard.lost().await, Loss::Unreachable);
    let next = timeout(TTL, scene.guard.lost()).await;
    assert!(next.is_err(), "{next:?} a second time");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_only_moves_by_hand_is_followed() {
    let clock = Arc::new(ManualClock::new());
    let server = Scripted::new(clock.clone());
    let locks = Locks::new(server.clone(), clock.clone(), Handle::current());
    let terms = Terms::new(1, NOTICE);
    let mut guard = guard(locks.acquire(request(&key(), "a", TTL), terms).await.unwrap());
    clock.advance(TTL / 3);
    while server.renewals.calls() < 1 {
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    clock.advance(TTL);
    assert_eq!(guard.lost().await, Loss::Cap);
}

#[tokio::test(start_paused = true)]
async fn a_final_loss_is_reported_once() {
    let mut scene = Scene::with_cap(0).await;
    assert_eq!(scene.guard.lost().await, Loss::Cap);
    assert!(timeout(TTL * 100, scene.guard.lost()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_dropped_wait_for_a_loss_misses_nothing() {
    let mut scene = Scene::with_cap(0).await;
    let mut waits = 0;
    let loss = loop {
        waits += 1;
        if let Ok(loss) = timeout(Duration::from_secs(1), scene.guard.lost()).await {
            break loss;
        }
    };
    assert_eq!(loss, Loss::Cap);
    assert!(waits > 20);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_guard_stops_the_renewals_and_leaves_the_lock_to_its_ttl() {
    let scene = Scene::with_cap(100).await;
    drop(scene.guard);
    assert!(!is_free(&*scene.server.table, &key()).await);
    tokio::time::sleep(TTL + Duration::from_millis(5)).await;
    assert_eq!(scene.server.renewals.calls(), 0);
    assert!(is_free(&*scene.server.table, &key()).await);
}

#[tokio::test(start_paused = true)]
async fn a_release_ends_renewals_and_frees_the_lock_at_once() {
    let scene = Scene::with_cap(100).await;
    tokio::time::sleep(TTL / 3 + Duration::from_millis(5)).await;
    let release = scene.guard.release(None).await;
    assert_eq!(release.outcome.unwrap(), ReleaseOutcome::Released);
    assert_eq!(release.report.renewals_ok, 1);
    assert_about(release.report.held_for, TTL / 3);
    assert!(is_free(&*scene.server.table, &key()).await);
    tokio::time::sleep(TTL * 10).await;
    assert_eq!(scene.server.renewals.calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn no_renewal_is_sent_while_a_release_is_under_way() {
    let scene = Scene::with_cap(100).await;
    scene.server.releases.next([Fate::Late(TTL / 4)]);
    tokio::time::sleep(TTL / 4).await;
    assert_eq!(scene.guard.release(None).await.outcome.unwrap(), ReleaseOutcome::Released);
    assert_about(scene.clock.boot_now().saturating_since(scene.start), TTL / 2);
    assert_eq!(scene.server.renewals.calls(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_release_is_tried_again_while_the_server_is_away() {
    let scene = Scene::with_cap(100).await;
    scene.server.releases.next([Fate::Refused, Fate::Refused]);
    assert_eq!(scene.guard.release(None).await.outcome.unwrap(), ReleaseOutcome::Released);
}

#[tokio::test(start_paused = true)]
async fn a_release_that_keeps_failing_is_soon_an_error() {
    let scene = Scene::with_cap(100).await;
    scene.server.releases.all(Fate::Refused);
    let start = scene.clock.boot_now();
    scene.guard.release(None).await.outcome.unwrap_err();
    assert_eq!(scene.server.releases.calls(), 3);
    assert!(scene.clock.boot_now().saturating_since(start) < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn a_release_whose_reply_was_lost_is_no_mismatch() {
    let scene = Scene::with_cap(100).await;
    scene.server.releases.next([Fate::ReplyLost(Duration::from_millis(500))]);
    let done = DoneMark::new("noon", TTL);
    let release = scene.guard.release(Some(done)).await;
    assert_eq!(release.outcome.unwrap(), ReleaseOutcome::Released);
    assert!(is_free(&*scene.server.table, &key()).await);
}

#[tokio::test(start_paused = true)]
async fn a_release_of_a_lock_that_someone_took_is_a_mismatch_and_leaves_it() {
    let scene = Scene::with_cap(100).await;
    scene.take_away().await;
    assert_eq!(scene.guard.release(None).await.outcome.unwrap(), ReleaseOutcome::NotMine);
    assert!(!is_free(&*scene.server.table, &key()).await);
}

#[tokio::test(start_paused = true)]
async fn a_release_without_an_answer_is_given_up_after_a_third_of_the_ttl() {
    let scene = Scene::with_cap(100).await;
    scene.server.releases.all(Fate::Hangs);
    scene.guard.release(None).await.outcome.unwrap_err();
    // Three tries, each of a third, and the short pauses between them.
    let took = scene.clock.boot_now().saturating_since(scene.start);
    assert!(took >= TTL && took < TTL + Duration::from_secs(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_is_gone_at_the_very_end_of_trust_counts_as_a_mismatch() {
    let clock = Arc::new(ManualClock::new());
    let server = Scripted::new(clock.clone());
    let locks = Locks::new(server.clone(), clock.clone(), Handle::current());
    let held = guard(locks.acquire(request(&key(), "a", TTL), Terms::new(0, NOTICE)).await.unwrap());
    server.table.release(&key(), held.token(), None).await.unwrap();
    server.releases.next([Fate::Refused]);
    let end = held.lease().trusted_until().saturating_since(clock.boot_now());
    let let_trust_end = async {
        while server.releases.calls() == 0 {
            tokio::task::yield_now().await;
        }
        clock.advance(end);
    };
    let (release, ()) = tokio::join!(held.release(None), let_trust_end);
    assert_eq!(server.releases.calls(), 2);
    assert_eq!(release.outcome.unwrap(), ReleaseOutcome::NotMine);
}

#[test]
fn without_its_runtime_a_keep_alive_is_unreachable() {
    let keepalive =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().unwrap();
    let main = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    main.block_on(async {
        let clock = Arc::new(RuntimeClock::new());
        let locks = Locks::new(Scripted::new(clock.clone()), clock, keepalive.handle().clone());
        let terms = Terms::new(100, NOTICE);
        let mut guard = guard(locks.acquire(request(&key(), "a", TTL), terms).await.unwrap());
        keepalive.shutdown_background();
        assert_eq!(guard.lost().await, Loss::Unreachable);
    });
}
