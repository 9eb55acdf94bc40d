//! A lost lock that is taken again: within its life, as one of its renewals, and never after its end.

use std::time::Duration;

use lockcore::{Acquisition, BootClock, DoneMark, Lease, LeaseGuard, LockError, Loss, ReleaseOutcome, Terms};

use crate::scripted::{Fate, Scene};
use crate::support::{guard, is_free, key, request};

const TTL: Duration = Duration::from_secs(30);

impl Scene {
    /// A lock with so many renewals that its server has lost, and that has noticed this at its first renewal.
    async fn lost(&self, max_renewals: u32) -> LeaseGuard {
        let terms = Terms::new(max_renewals, Duration::ZERO);
        let mut lost = guard(self.locks.acquire(request(&key(), "a", TTL), terms).await.unwrap());
        self.server.table.release(&key(), lost.token(), None).await.unwrap();
        assert_eq!(lost.lost().await, Loss::NotMine);
        lost
    }

    async fn retake(&self, lost: &LeaseGuard) -> Result<Option<Acquisition>, LockError> {
        self.locks.retake(lost, None).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_lock_is_taken_again_under_a_new_token_and_counts_as_renewed() {
    let scene = Scene::new();
    let lost = scene.lost(10).await;
    let again = guard(scene.retake(&lost).await.unwrap().unwrap());
    assert_ne!(again.token(), lost.token());
    assert_eq!(again.lease().renewals(), 1);
    assert_eq!(again.lease().life_ends(), lost.lease().life_ends());
    assert_eq!(again.report().held_for, lost.report().held_for);
    // The old guard has no power over the new lock.
    drop(lost);
    assert!(!is_free(&*scene.server.table, &key()).await);
    assert_eq!(again.release(None).await.outcome.unwrap(), ReleaseOutcome::Released);
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_was_taken_again_is_renewed_up_to_the_cap_of_the_first() {
    let scene = Scene::new();
    let start = scene.clock.boot_now();
    let lost = scene.lost(3).await;
    let mut again = guard(scene.retake(&lost).await.unwrap().unwrap());
    assert_eq!(again.lost().await, Loss::Cap);
    assert_eq!(again.report().renewals_ok, 3);
    let life = Lease::longest_life(TTL, 3);
    assert!(scene.clock.boot_now() < start + life);
    tokio::time::sleep(TTL).await;
    assert!(is_free(&*scene.server.table, &key()).await, "it outlives its cap");
}

#[tokio::test(start_paused = true)]
async fn a_late_retake_asks_for_no_more_than_is_left_of_the_life() {
    let scene = Scene::new();
    let lost = scene.lost(3).await;
    let end = lost.lease().life_ends();
    let left = end.saturating_since(scene.clock.boot_now());
    tokio::time::sleep(left - Duration::from_secs(12)).await;
    let again = guard(scene.retake(&lost).await.unwrap().unwrap());
    assert!(again.lease().trusted_until() < end);
    drop(again);
    tokio::time::sleep(Duration::from_millis(12_050)).await;
    assert!(is_free(&*scene.server.table, &key()).await, "it outlives the first acquisition");
}

#[tokio::test(start_paused = true)]
async fn no_lock_is_taken_again_without_a_renewal_left_or_after_its_life() {
    let scene = Scene::new();
    let lost = scene.lost(1).await;
    let again = guard(scene.retake(&lost).await.unwrap().unwrap());
    assert!(scene.retake(&again).await.unwrap().is_none(), "the only renewal was used up");
    again.release(None).await.outcome.unwrap();

    let lost = scene.lost(100).await;
    let life = Lease::longest_life(TTL, 100);
    tokio::time::sleep(life).await;
    let asked = scene.server.acquires.calls();
    assert!(scene.retake(&lost).await.unwrap().is_none());
    assert_eq!(scene.server.acquires.calls(), asked, "the server was asked for nothing");
}

#[tokio::test(start_paused = true)]
async fn a_lock_that_someone_else_has_is_not_taken() {
    let scene = Scene::new();
    let lost = scene.lost(10).await;
    scene.server.table.acquire(&request(&key(), "other", TTL)).await.unwrap();
    let answer = scene.retake(&lost).await.unwrap().unwrap();
    let Acquisition::Held { holder, .. } = answer else { panic!("{answer:?}") };
    assert_eq!(holder.instance, "other");
}

#[tokio::test(start_paused = true)]
async fn a_lock_whose_work_is_done_is_not_taken_again() {
    let scene = Scene::new();
    let lost = scene.lost(10).await;
    let other = request(&key(), "other", TTL);
    scene.server.table.acquire(&other).await.unwrap();
    let mark = DoneMark::new("noon", TTL);
    scene.server.table.release(&key(), &other.token, Some(&mark)).await.unwrap();
    let answer = scene.locks.retake(&lost, Some("noon".into())).await.unwrap();
    assert!(matches!(answer, Some(Acquisition::Done)), "{answer:?}");
}

#[tokio::test(start_paused = true)]
async fn a_retake_without_an_answer_leaves_no_lock_behind() {
    let scene = Scene::new();
    let lost = scene.lost(10).await;
    scene.server.acquires.next([Fate::ReplyLost(Duration::from_secs(1))]);
    scene.retake(&lost).await.unwrap_err();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(is_free(&*scene.server.table, &key()).await, "nobody has it, and nobody can take it");

    // Dropped in the middle of it: its run has ended.
    scene.server.acquires.next([Fate::Late(Duration::from_secs(5))]);
    let dropped = tokio::time::timeout(Duration::from_secs(1), scene.retake(&lost)).await;
    assert!(dropped.is_err());
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(is_free(&*scene.server.table, &key()).await, "nobody has it, and nobody can take it");
}
