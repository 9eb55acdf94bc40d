//! How long the pauses between two tries are, for many seeds of their jitter, in paused time.

use std::sync::Arc;
use std::time::Duration;

use lockcore::{Acquisition, BootClock, Jitter, Locks, Terms};
use tokio::runtime::Handle;

use crate::scripted::{Fate, Scripted};
use crate::support::{RuntimeClock, guard, key, request};

const TTL: Duration = Duration::from_secs(30);
/// The timers of the runtime count whole milliseconds, so each pause may be longer by about one.
const ROUNDING: Duration = Duration::from_millis(3);

/// Locks whose waits depend on a seed only.
struct Seeded {
    clock: Arc<RuntimeClock>,
    server: Arc<Scripted>,
    locks: Locks,
}

impl Seeded {
    fn new(seed: u64) -> Self {
        let clock = Arc::new(RuntimeClock::new());
        let server = Scripted::new(clock.clone());
        let locks = Locks::new(server.clone(), clock.clone(), Handle::current());
        let locks = locks.with_jitter(Arc::new(Jitter::from_seed(seed)));
        Self { clock, server, locks }
    }

    /// How long it takes to release a lock of this ttl if the first two tries are refused.
    async fn release(&self, ttl: Duration) -> Duration {
        let terms = Terms::new(3, Duration::ZERO);
        let guard = guard(self.locks.acquire(request(&key(), "a", ttl), terms).await.unwrap());
        self.server.releases.next([Fate::Refused, Fate::Refused]);
        let start = self.clock.boot_now();
        guard.release(None).await.outcome.unwrap();
        self.clock.boot_now().saturating_since(start)
    }
}

#[tokio::test(start_paused = true)]
async fn the_seed_decides_the_pauses() {
    let mut seen = Vec::new();
    for seed in 0..20 {
        let pauses = Seeded::new(seed).release(TTL).await;
        let again = Seeded::new(seed).release(TTL).await;
        // A pause begins at any part of a millisecond.
        assert!(pauses.abs_diff(again) <= ROUNDING, "{pauses:?} and {again:?}");
        seen.push(pauses);
    }
    assert!(seen.iter().max() > seen.iter().min().map(|least| *least + 3 * ROUNDING).as_ref(), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn pauses_between_releases_begin_at_ten_milliseconds_and_double() {
    let (mut longest, bound) = (Duration::ZERO, Duration::from_millis(10 + 20));
    for seed in 0..200 {
        let pauses = Seeded::new(seed).release(TTL).await;
        assert!(pauses <= bound + ROUNDING, "{pauses:?} with the seed {seed}");
        longest = longest.max(pauses);
    }
    assert!(longest > Duration::from_millis(20), "{longest:?}: the second ceiling is not twice the first");
}

#[tokio::test(start_paused = true)]
async fn a_pause_between_releases_is_at_most_a_twentieth_of_the_ttl() {
    let ttl = Duration::from_millis(100);
    for seed in 0..200 {
        let pauses = Seeded::new(seed).release(ttl).await;
        assert!(pauses <= 2 * ttl / 20 + ROUNDING, "{pauses:?} with the seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_renewal_is_repeated_within_a_sixtieth_of_the_ttl() {
    for seed in 0..50 {
        let scene = Seeded::new(seed);
        scene.server.renewals.next([Fate::Refused]);
        let terms = Terms::new(3, Duration::ZERO);
        let held = guard(scene.locks.acquire(request(&key(), "a", TTL), terms).await.unwrap());
        tokio::time::sleep(TTL / 3 + TTL / 60 + ROUNDING).await;
        let report = held.report();
        assert_eq!((report.renewals_failed, report.renewals_ok), (1, 1), "with the seed {seed}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_held_lock_is_asked_for_at_least_every_quarter_of_the_ttl() {
    let (ttl, wait) = (Duration::from_millis(200), Duration::from_secs(10));
    let scene = Seeded::new(1);
    scene.server.table.acquire(&request(&key(), "other", TTL)).await.unwrap();
    let terms = Terms::new(3, Duration::ZERO).max_wait(wait);
    let end = scene.locks.acquire(request(&key(), "a", ttl), terms).await.unwrap();
    assert!(matches!(end, Acquisition::Held { .. }), "{end:?}");
    let tries = u32::try_from(scene.server.acquires.calls()).unwrap();
    assert!((ttl / 4 + ROUNDING) * tries >= wait, "{tries} tries in {wait:?}");
}

#[tokio::test(start_paused = true)]
async fn a_background_release_is_tried_at_least_every_quarter_of_the_ttl() {
    let (ttl, seeds) = (Duration::from_millis(400), 100);
    let mut tries = 0;
    for seed in 0..seeds {
        let scene = Seeded::new(seed);
        scene.server.acquires.all(Fate::Refused);
        scene.server.releases.all(Fate::Refused);
        let terms = Terms::new(3, Duration::ZERO);
        scene.locks.acquire(request(&key(), "a", ttl), terms).await.unwrap_err();
        tokio::time::sleep(ttl * 2).await;
        tries += scene.server.releases.calls();
    }
    // At most a quarter each would be four pauses; half of it on average, with a shorter first one, is eight.
    assert!(tries >= 8 * seeds as usize, "{tries} tries with {seeds} seeds");
}
