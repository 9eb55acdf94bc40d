//! The rules of a correct lock. Each is one function, and each backend has to pass it.

use std::time::Duration;

use futures_util::future::join_all;
use lockcore::{
    AcquireOutcome, AcquireRequest, Acquisition, DoneMark, LockBackend, LockKey, Loss, ReleaseOutcome,
    RenewOutcome, Terms,
};

use super::bench::Bench;
use crate::support::{guard, is_free, key, request, wait_for};

/// Long enough that no lock expires during a test, however busy the machine is.
const LONG: Duration = Duration::from_secs(300);
/// Short enough to wait for.
const SHORT: Duration = Duration::from_millis(40);

fn terms() -> Terms {
    Terms::new(100, Duration::ZERO)
}

async fn take(bench: &Bench, request: &AcquireRequest) {
    assert_eq!(bench.backend.acquire(request).await.unwrap(), AcquireOutcome::Acquired);
}

/// How long it takes until the lock of [`key`] expires.
async fn remaining(bench: &Bench) -> Duration {
    match bench.backend.acquire(&request(&key(), "probe", LONG)).await.unwrap() {
        AcquireOutcome::Held { remaining, .. } => remaining.unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn freed(bench: &Bench) {
    wait_for("the lock to be free", async || {
        if is_free(&*bench.backend, &key()).await { Ok(()) } else { Err("held") }
    })
    .await;
}

pub(crate) async fn a_lock_is_taken_together_with_its_expiry(bench: Bench) {
    take(&bench, &request(&key(), "a", LONG)).await;
    let left = remaining(&bench).await;
    assert!(left <= LONG && left > LONG / 2, "{left:?}");
}

pub(crate) async fn an_expired_lock_is_free_for_the_next(bench: Bench) {
    take(&bench, &request(&key(), "a", SHORT)).await;
    freed(&bench).await;
}

pub(crate) async fn one_of_many_gets_the_lock(bench: Bench) {
    let requests: Vec<_> = (0..50).map(|n| request(&key(), &format!("instance-{n}"), LONG)).collect();
    let outcomes = join_all(requests.iter().map(|request| bench.backend.acquire(request))).await;
    let winners = outcomes.into_iter().filter(|outcome| matches!(outcome, Ok(AcquireOutcome::Acquired)));
    assert_eq!(winners.count(), 1);
}

pub(crate) async fn each_acquisition_has_a_value_of_its_own_that_losers_can_read(bench: Bench) {
    let (first, second) = (request(&key(), "a", LONG), request(&key(), "a", LONG));
    take(&bench, &first).await;
    match bench.backend.acquire(&second).await.unwrap() {
        AcquireOutcome::Held { holder, .. } => {
            assert_eq!(holder.instance, "a");
            assert_eq!(holder.subject, "2026-06-01T12:00:00Z");
        }
        other => panic!("a second acquisition by the same instance got {other:?}"),
    }
    let release = bench.backend.release(&key(), &second.token, None).await.unwrap();
    assert_eq!(release, ReleaseOutcome::NotMine);
}

pub(crate) async fn the_same_token_acquires_again_without_moving_the_expiry(bench: Bench) {
    let mut mine = request(&key(), "a", LONG);
    take(&bench, &mine).await;
    mine.ttl = LONG * 2;
    take(&bench, &mine).await;
    assert!(remaining(&bench).await <= LONG);
}

pub(crate) async fn a_release_deletes_only_its_own_lock(bench: Bench) {
    let (mine, other) = (request(&key(), "a", LONG), request(&key(), "b", LONG));
    take(&bench, &mine).await;
    let release = async |token| bench.backend.release(&key(), token, None).await.unwrap();
    assert_eq!(release(&other.token).await, ReleaseOutcome::NotMine);
    assert!(!is_free(&*bench.backend, &key()).await);
    assert_eq!(release(&mine.token).await, ReleaseOutcome::Released);
    assert!(is_free(&*bench.backend, &key()).await);
    assert_eq!(release(&mine.token).await, ReleaseOutcome::NotMine);
}

pub(crate) async fn a_release_after_expiry_is_a_mismatch_and_spares_the_next_holder(bench: Bench) {
    let (mine, next) = (request(&key(), "a", SHORT), request(&key(), "b", LONG));
    take(&bench, &mine).await;
    freed(&bench).await;
    take(&bench, &next).await;
    let release = bench.backend.release(&key(), &mine.token, None).await.unwrap();
    assert_eq!(release, ReleaseOutcome::NotMine);
    assert!(!is_free(&*bench.backend, &key()).await);
}

pub(crate) async fn a_renewal_sets_its_own_lock_back_to_the_full_ttl_and_no_other(bench: Bench) {
    let (mine, other) = (request(&key(), "a", LONG), request(&key(), "b", LONG));
    take(&bench, &mine).await;
    let renew = async |token, ttl| bench.backend.renew(&key(), token, ttl).await.unwrap();
    assert_eq!(renew(&other.token, LONG * 9).await, RenewOutcome::NotMine);
    assert!(remaining(&bench).await <= LONG);
    assert_eq!(renew(&mine.token, LONG * 3).await, RenewOutcome::Renewed);
    let left = remaining(&bench).await;
    assert!(left <= LONG * 3 && left > LONG * 2, "{left:?}");
}

pub(crate) async fn a_lost_lock_is_not_brought_back_by_renewal(bench: Bench) {
    let mine = request(&key(), "a", LONG);
    take(&bench, &mine).await;
    bench.backend.release(&key(), &mine.token, None).await.unwrap();
    let renewal = bench.backend.renew(&key(), &mine.token, LONG).await.unwrap();
    assert_eq!(renewal, RenewOutcome::NotMine);
    assert!(is_free(&*bench.backend, &key()).await);
}

pub(crate) async fn a_lock_that_is_lost_is_told_to_its_guard(bench: Bench) {
    let ttl = Duration::from_millis(1_500);
    let mut guard = guard(bench.locks.acquire(request(&key(), "a", ttl), terms()).await.unwrap());
    bench.backend.release(&key(), guard.token(), None).await.unwrap();
    take(&bench, &request(&key(), "other", LONG)).await;
    // A stall of the machine may cost the trust first; the server's word comes all the same.
    while guard.lost().await != Loss::NotMine {}
    assert_eq!(guard.release(None).await.outcome.unwrap(), ReleaseOutcome::NotMine);
}

pub(crate) async fn renewals_end_at_the_cap_and_the_lock_runs_out(bench: Bench) {
    let ttl = Duration::from_millis(900);
    let start = bench.clock.boot_now();
    let capped = Terms::new(2, Duration::ZERO);
    let mut guard = guard(bench.locks.acquire(request(&key(), "a", ttl), capped).await.unwrap());
    while guard.lost().await != Loss::Cap {}
    let report = guard.report();
    assert!(report.cap_reached && report.renewals_ok <= 2, "{report:?}");
    if report.renewals_ok == 2 && report.renewals_failed == 0 {
        let lived = bench.clock.boot_now().saturating_since(start);
        assert!(lived >= Duration::from_millis(1_400), "trust ended after {lived:?} of 1.5 s");
    }
    freed(&bench).await;
    assert_eq!(guard.release(None).await.outcome.unwrap(), ReleaseOutcome::NotMine);
}

pub(crate) async fn a_held_lock_is_waited_for_within_bounds_and_with_pauses(bench: Bench) {
    take(&bench, &request(&key(), "a", LONG)).await;
    let (start, before) = (bench.clock.boot_now(), bench.backend.acquires());
    let max_wait = Duration::from_millis(400);
    let acquisition =
        bench.locks.acquire(request(&key(), "b", LONG), terms().max_wait(max_wait)).await.unwrap();
    assert!(matches!(acquisition, Acquisition::Held { .. }), "{acquisition:?}");
    let waited = bench.clock.boot_now().saturating_since(start);
    assert!(waited >= max_wait, "gave up after {waited:?}");
    let tries = bench.backend.acquires() - before;
    assert!((2..50).contains(&tries), "{tries} tries in {waited:?}");
}

pub(crate) async fn a_released_lock_goes_to_one_who_waits(bench: Bench) {
    let first = guard(bench.locks.acquire(request(&key(), "a", LONG), terms()).await.unwrap());
    let wait = bench.locks.acquire(request(&key(), "b", LONG), terms().max_wait(LONG));
    let before = bench.backend.acquires();
    let release = async {
        // Not before the other has been refused at least once.
        wait_for("a try of the other", async || {
            if bench.backend.acquires() > before + 1 { Ok(()) } else { Err(bench.backend.acquires()) }
        })
        .await;
        first.release(None).await.outcome.unwrap()
    };
    let (second, released) = tokio::join!(wait, release);
    assert_eq!(released, ReleaseOutcome::Released);
    drop(guard(second.unwrap()));
}

pub(crate) async fn shards_instants_names_scopes_and_prefixes_lock_apart(bench: Bench) {
    let new = |prefix, scope, name| LockKey::new(prefix, scope, name).unwrap();
    let keys = [
        key(),
        key().shard(0),
        key().shard(1),
        key().at(0),
        key().at(1_780_315_200_000),
        key().shard(1).at(1_780_315_200_000),
        new("test", "default", "other"),
        new("test", "other", "job"),
        new("other", "default", "job"),
    ];
    for key in &keys {
        take(&bench, &request(key, "a", LONG)).await;
    }
    for key in &keys {
        assert!(!is_free(&*bench.backend, key).await, "{key}");
    }
}

pub(crate) async fn acquisitions_holds_and_mismatches_can_be_counted(bench: Bench) {
    let start = bench.clock.boot_now();
    let first = guard(bench.locks.acquire(request(&key(), "a", LONG), terms()).await.unwrap());
    let refused = bench.locks.acquire(request(&key(), "b", LONG), terms()).await.unwrap();
    assert!(matches!(refused, Acquisition::Held { .. }), "{refused:?}");
    let release = first.release(None).await;
    assert_eq!(release.outcome.unwrap(), ReleaseOutcome::Released);
    assert!(release.report.held_for <= bench.clock.boot_now().saturating_since(start));
    assert!(!release.report.held_for.is_zero());

    let second = guard(bench.locks.acquire(request(&key(), "c", LONG), terms()).await.unwrap());
    bench.backend.release(&key(), second.token(), None).await.unwrap();
    assert_eq!(second.release(None).await.outcome.unwrap(), ReleaseOutcome::NotMine);
}

fn done(subject: &str, ttl: Duration) -> DoneMark {
    DoneMark::new(subject, ttl)
}

fn unless(subject: &str, ttl: Duration) -> AcquireRequest {
    let mut request = request(&key(), "late", ttl);
    request.unless_done = Some(subject.into());
    request
}

pub(crate) async fn a_done_marker_answers_late_comers_for_its_subject_until_it_expires(bench: Bench) {
    let first = request(&key(), "a", LONG);
    take(&bench, &first).await;
    bench.backend.release(&key(), &first.token, Some(&done("noon", LONG))).await.unwrap();
    assert_eq!(bench.backend.acquire(&unless("noon", LONG)).await.unwrap(), AcquireOutcome::Done);
    // Neither another subject nor one who did not ask is turned away.
    assert!(is_free(&*bench.backend, &key()).await);
    let next = unless("one o'clock", LONG);
    take(&bench, &next).await;
    assert_eq!(bench.backend.acquire(&unless("noon", LONG)).await.unwrap(), AcquireOutcome::Done);
    bench.backend.release(&key(), &next.token, Some(&done("one o'clock", SHORT))).await.unwrap();
    wait_for("the marker to expire", async || {
        match bench.backend.acquire(&unless("one o'clock", LONG)).await.unwrap() {
            AcquireOutcome::Acquired => Ok(()),
            other => Err(other),
        }
    })
    .await;
}

pub(crate) async fn a_mismatched_release_leaves_no_done_marker(bench: Bench) {
    let stale = request(&key(), "a", LONG);
    let release = bench.backend.release(&key(), &stale.token, Some(&done("noon", LONG))).await.unwrap();
    assert_eq!(release, ReleaseOutcome::NotMine);
    assert_eq!(bench.backend.acquire(&unless("noon", LONG)).await.unwrap(), AcquireOutcome::Acquired);
}

pub(crate) async fn a_repeated_token_is_acquired_even_when_the_work_is_done(bench: Bench) {
    let first = request(&key(), "a", LONG);
    take(&bench, &first).await;
    bench.backend.release(&key(), &first.token, Some(&done("noon", LONG))).await.unwrap();
    let mut second = request(&key(), "b", LONG);
    take(&bench, &second).await;
    second.unless_done = Some("noon".into());
    take(&bench, &second).await;
}

pub(crate) async fn expiries_below_a_millisecond_are_taken_as_one(bench: Bench) {
    let first = request(&key(), "a", Duration::from_nanos(1));
    bench.backend.acquire(&first).await.unwrap();
    freed(&bench).await;
}
