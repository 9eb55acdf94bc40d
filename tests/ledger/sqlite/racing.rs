//! Many writers on one file.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::time::{Duration, Instant};

use chrono::{DateTime, TimeDelta, Utc};
use runner::internal::firing::State;
use runner::internal::ledger::{
    Claim, Heartbeat, HistoryFilter, Housekeeping, Ledger, LedgerError, Reader, Run, Settled, SqliteLedger,
};
use sqlx::{Connection, SqliteConnection};
use tokio::task::JoinSet;

use super::peer::{self, Peer};
use super::scene::{self, LEASE, Scene, claim_of, firing, second, success};

#[tokio::test]
async fn three_processes_racing_for_the_same_firings_find_one_winner_each() {
    let name = testbed::test_name!(three_processes_racing_for_the_same_firings_find_one_winner_each);
    const FIRINGS: i64 = 300;
    if let Some(role) = peer::role() {
        let ledger = scene::open(&role.file).await;
        let start: i64 = ledger.jobs().await.expect("jobs")[0].spec_hash.parse().expect("an instant");
        peer::wait_for_start();
        for back in 0..FIRINGS {
            let at = DateTime::from_timestamp(start - back, 0).expect("an instant");
            match ledger.claim(&claim_of(firing(at), &role.number.to_string())).await.expect("an answer") {
                Claim::Won(won) => peer::tell(&format!("{} {}", at.timestamp(), won.fence)),
                Claim::Duplicate(_) => {}
                other => panic!("{other:?}"),
            }
        }
        return;
    }
    let scene = Scene::new();
    let ledger = scene.ledger().await;
    // The spec_hash carries the first instant to the children.
    let start = second(0).timestamp();
    let job = runner::internal::ledger::JobRegistration {
        name: scene::JOB.to_owned(),
        spec_hash: start.to_string(),
    };
    ledger.register(&[job]).await.expect("registered");

    let mut winners: BTreeMap<i64, u32> = BTreeMap::new();
    let mut fences = BTreeSet::new();
    for peer in Peer::start_together(name, &scene.file(), 3) {
        for line in peer.finish() {
            let (at, fence) = line.split_once(' ').expect("two words");
            *winners.entry(at.parse().expect("an instant")).or_default() += 1;
            fences.insert(fence.parse::<i64>().expect("a fence"));
        }
    }
    let wanted: BTreeMap<i64, u32> = (0..FIRINGS).map(|back| (start - back, 1)).collect();
    assert_eq!(winners, wanted);
    assert_eq!(fences.len(), winners.len(), "every claim has a fence of its own");
    let rows = ledger.history(&HistoryFilter::default()).await.expect("history");
    assert_eq!(rows.len(), winners.len());
}

#[tokio::test]
async fn two_processes_on_one_file_never_find_it_locked() {
    let name = testbed::test_name!(two_processes_on_one_file_never_find_it_locked);
    const SPAN: Duration = Duration::from_secs(5);
    if let Some(role) = peer::role() {
        let ledger = scene::open(&role.file).await;
        peer::wait_for_start();
        let (end, mut slowest, mut rounds) = (Instant::now() + SPAN, Duration::ZERO, 0);
        while Instant::now() < end {
            // Keys of its own: this is about the file, not about who wins.
            let mut firing = firing(second(0));
            firing.trigger_key = format!("{}-{rounds}", role.number);
            let since = Instant::now();
            let run = win(&ledger, &claim_of(firing, "me")).await;
            assert!(matches!(ledger.heartbeat(run, LEASE).await, Ok(Heartbeat::Alive { .. })));
            assert_eq!(ledger.settle(&success(run)).await.expect("an answer"), Settled::Recorded);
            slowest = slowest.max(since.elapsed());
            rounds += 1;
        }
        peer::tell(&format!("{rounds} {}", slowest.as_millis()));
        return;
    }
    let scene = Scene::new();
    let ledger = scene.ledger().await;
    let mut written = 0;
    for peer in Peer::start_together(name, &scene.file(), 2) {
        let said = peer.finish();
        let (rounds, slowest) = said[0].split_once(' ').expect("two words");
        let rounds: u64 = rounds.parse().expect("a count");
        let slowest: u64 = slowest.parse().expect("milliseconds");
        println!("{rounds} rounds, the slowest took {slowest} ms");
        assert!(rounds > 50, "{rounds} rounds: starved");
        assert!(slowest < 2_000, "{slowest} ms for one round: starved");
        written += rounds;
    }
    let counts = ledger.counts().await.expect("counts");
    assert_eq!(counts.len(), 1);
    assert_eq!((&counts[0].state, counts[0].rows), (&State::Succeeded.into(), written));
}

#[tokio::test]
async fn a_writer_killed_at_any_moment_leaves_every_acknowledged_claim_readable() {
    let name = testbed::test_name!(a_writer_killed_at_any_moment_leaves_every_acknowledged_claim_readable);
    if let Some(role) = peer::role() {
        let ledger = scene::open(&role.file).await;
        peer::wait_for_start();
        for round in 0.. {
            let mut firing = firing(second(0));
            firing.trigger_key = format!("{}/{round}", std::process::id());
            let run = win(&ledger, &claim_of(firing, "victim")).await;
            peer::tell(&format!("{} {}", run.id.0, run.fence));
            ledger.settle(&success(run)).await.expect("settled");
        }
        unreachable!("it writes until it is killed");
    }
    let scene = Scene::new();
    scene.ledger().await;
    let mut newest = 0;
    for lines in [1, 7, 40] {
        let mut peer = Peer::start_together(name, &scene.file(), 1).remove(0);
        let mut acknowledged: Vec<String> = std::iter::from_fn(|| peer.hear()).take(lines).collect();
        assert_eq!(acknowledged.len(), lines, "it ended before it was killed");
        peer.kill();
        acknowledged.extend(std::iter::from_fn(|| peer.hear()));

        let ledger = scene::open(&scene.file()).await;
        for line in acknowledged {
            let (id, fence) = line.split_once(' ').expect("two words");
            let id = runner::internal::ledger::FiringId(id.parse().expect("a number"));
            let row = ledger.firing(id).await.expect("readable").expect("the claim lasted");
            assert_eq!(row.fence, Some(fence.parse().expect("a fence")));
        }
        let mut firing = firing(second(0));
        firing.trigger_key = format!("heir of {lines}");
        let run = win(&ledger, &claim_of(firing, "heir")).await;
        assert!(run.fence.0 > newest, "fences grow over kills and reopenings");
        newest = run.fence.0;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_twenty_tasks_that_claim_one_firing_one_wins() {
    let scene = Scene::new();
    let ledger = std::sync::Arc::new(scene.ledger().await);
    let at = second(0);
    let mut tasks = JoinSet::new();
    for number in 0..20 {
        let ledger = ledger.clone();
        tasks.spawn(async move { ledger.claim(&claim_of(firing(at), &number.to_string())).await });
    }
    let claims: Vec<Claim> = tasks.join_all().await.into_iter().map(|claim| claim.expect("answer")).collect();
    let won = claims.iter().filter(|claim| matches!(claim, Claim::Won(_))).count();
    let duplicate = claims.iter().filter(|claim| matches!(claim, Claim::Duplicate(_))).count();
    assert_eq!((won, duplicate), (1, 19), "{claims:?}");
}

#[tokio::test]
async fn a_claim_dropped_at_any_point_leaves_the_ledger_free_and_its_outcome_certain() {
    let scene = Scene::new();
    let ledger = scene.ledger().await;
    let start = second(0);
    let mut outcomes = BTreeSet::new();
    for polls in 0..60 {
        let request = claim_of(firing(start - TimeDelta::seconds(polls)), "me");
        let left = drop_after(polls, ledger.claim(&request)).await;
        let confirmed = ledger.confirm(&request).await.expect("an answer");
        if let Some(claim) = left {
            assert!(matches!(claim.expect("an answer"), Claim::Won(won) if Some(won) == confirmed));
        }
        outcomes.insert(confirmed.is_some());
        // What the confirmation says stays true: nothing lands behind its back.
        let row = ledger.history(&HistoryFilter::default()).await.expect("history").into_iter();
        let there = row.filter(|row| row.claim_id == Some(request.claim_id)).count();
        assert_eq!(there, usize::from(confirmed.is_some()));
        // And another process's write finds the file free.
        let again = ledger.claim(&request).await.expect("an answer");
        assert!(matches!(again, Claim::Won(won) if confirmed.is_none_or(|known| known == won)), "{again:?}");
    }
    assert_eq!(outcomes.len(), 2, "the points must lie on both sides of the commit");
}

#[tokio::test]
async fn a_write_lock_that_somebody_keeps_is_no_outage_and_reads_go_on() {
    let scene = Scene::new();
    let ledger = scene.ledger().await;
    let request = claim_of(firing(second(0)), "me");
    let mut other = SqliteConnection::connect(&scene::url(&scene.file())).await.expect("connected");
    sqlx::query("BEGIN IMMEDIATE").execute(&mut other).await.expect("locked");
    let answer = ledger.claim(&request).await;
    assert!(matches!(answer, Err(LedgerError::Busy { .. })), "{answer:?}");
    assert_eq!(ledger.history(&HistoryFilter::default()).await.expect("history"), []);
    sqlx::query("ROLLBACK").execute(&mut other).await.expect("unlocked");
    assert_eq!(ledger.confirm(&request).await.expect("an answer"), None);
    win(&ledger, &request).await;
}

#[tokio::test]
async fn heartbeats_do_not_starve_behind_a_burst_of_claims() {
    let scene = Scene::new();
    let ledger = std::sync::Arc::new(scene.ledger().await);
    let first = second(0);
    let run = win(&ledger, &claim_of(firing(first), "me")).await;
    let mut claims = JoinSet::new();
    for back in 1..=400 {
        let ledger = ledger.clone();
        let firing = firing(first - TimeDelta::seconds(back));
        claims.spawn(async move { ledger.claim(&claim_of(firing, "burst")).await });
    }
    let mut slowest = Duration::ZERO;
    while !claims.is_empty() {
        let since = Instant::now();
        assert!(matches!(ledger.heartbeat(run, LEASE).await, Ok(Heartbeat::Alive { .. })));
        slowest = slowest.max(since.elapsed());
        while let Some(claim) = claims.try_join_next() {
            assert!(matches!(claim.expect("no panic"), Ok(Claim::Won(_))));
        }
    }
    println!("the slowest heartbeat took {slowest:?}");
    assert!(slowest < Duration::from_secs(2), "{slowest:?}");
}

#[tokio::test]
async fn the_ledgers_clock_is_this_hosts_to_the_millisecond() {
    let scene = Scene::new();
    let ledger = scene.ledger().await;
    let before = Utc::now().timestamp_millis();
    let now = ledger.now().await.expect("now").now.timestamp_millis();
    let after = Utc::now().timestamp_millis();
    assert!((before - 1..=after + 1).contains(&now), "{before} <= {now} <= {after}");
}

async fn win(ledger: &SqliteLedger, request: &runner::internal::ledger::ClaimRequest) -> Run {
    match ledger.claim(request).await.expect("an answer") {
        Claim::Won(won) => Run { id: won.id, fence: won.fence },
        other => panic!("expected to win, found {other:?}"),
    }
}

/// Polls a call `polls` times and drops it, or gives its answer if it comes before.
async fn drop_after<T>(
    polls: i64,
    call: impl Future<Output = Result<T, LedgerError>>,
) -> Option<Result<T, LedgerError>> {
    let mut call = std::pin::pin!(call);
    let mut left = polls;
    std::future::poll_fn(|context| {
        if left == 0 {
            return std::task::Poll::Ready(None);
        }
        left -= 1;
        call.as_mut().poll(context).map(Some)
    })
    .await
}
