//! What must hold when several replicas do it at once.

use std::collections::HashSet;
use std::time::Duration;

use runner::internal::firing::{Delivery, Firing, JobName, Reason, State, Vocabulary as _};
use runner::internal::ledger::{Claim, ClaimRequest, Ending, HistoryFilter, Settled, Settlement};

use crate::fixture::{
    Fixture, HOUR, Site, at_once, eventually, fresh, later, run, skipping, succeeded, take,
};

const SECOND: Duration = Duration::from_secs(1);
const MILLI: Duration = Duration::from_millis(1);

/// How many of the claims, all made at once, won.
async fn winners(site: &Site<impl Fixture>, requests: Vec<ClaimRequest>) -> usize {
    let claims = requests.into_iter().map(|request| {
        let ledger = site.opened.ledger.clone();
        async move { ledger.claim(&request).await.expect("an answer") }
    });
    at_once(claims).await.into_iter().filter(|claim| matches!(claim, Claim::Won(_))).count()
}

pub(crate) async fn one_of_twenty_claims_wins(site: &Site<impl Fixture>) {
    for shard in 0..5 {
        let mut firing = site.firing(SECOND).await;
        firing.shard = shard;
        let requests = (0..20).map(|_| fresh(&firing)).collect();
        assert_eq!(winners(site, requests).await, 1);
    }
}

pub(crate) async fn one_of_twenty_claims_wins_a_queued_row(site: &Site<impl Fixture>) {
    for shard in 0..5 {
        let mut firing = site.firing(SECOND).await;
        firing.shard = shard;
        let id = site.queued(&firing).await;
        let requests = (0..20).map(|_| take(&firing, id)).collect();
        assert_eq!(winners(site, requests).await, 1);
        assert_eq!(site.row(id).await.attempt, 1);
    }
}

pub(crate) async fn one_of_twenty_exclusive_firings_of_a_job_runs(site: &Site<impl Fixture>) {
    for shard in 0..5 {
        let mut firing = site.firing(SECOND).await;
        firing.shard = shard;
        let mut requests: Vec<_> = (0..10).map(|n| fresh(&later(&firing, MILLI * n))).collect();
        for n in 10..20 {
            let firing = later(&firing, MILLI * n);
            requests.push(take(&firing, site.queued(&firing).await));
        }
        assert_eq!(winners(site, requests).await, 1);
    }
}

pub(crate) async fn one_of_twenty_sweeps_takes_a_run(site: &Site<impl Fixture>) {
    for _ in 0..5 {
        let suspect = site.suspect(site.abandoned(Delivery::AtLeastOnce).await).await;
        let sweeps = (0..20).map(|_| {
            let (sweeping, suspects) = (site.opened.sweeping.clone(), [suspect.clone()]);
            async move { sweeping.sweep(&suspects).await.expect("an answer").len() }
        });
        assert_eq!(at_once(sweeps).await.into_iter().sum::<usize>(), 1);
        assert_eq!(site.row(suspect.run.id).await.crashes, 1);
        assert_eq!(site.opened.reader.attempts(suspect.run.id).await.unwrap().len(), 1);
    }
}

pub(crate) async fn one_of_twenty_settles_of_rivals_is_recorded(site: &Site<impl Fixture>) {
    let won = site.run().await;
    let settles = (0..20).map(|n| {
        let ledger = site.opened.ledger.clone();
        // Each ends it in a way of its own: the same end twice is one settle, repeated.
        let ending = match Reason::ALL.get(n) {
            Some(reason) => crate::fixture::ended(State::Failed, *reason),
            None => Ending::Terminal { state: State::Cancelled, reason: None },
        };
        let settlement = Settlement { run: run(won), ending, crashed: false, error: None, output: None };
        async move { ledger.settle(&settlement).await.expect("an answer") }
    });
    let recorded = at_once(settles).await.into_iter().filter(|settled| *settled == Settled::Recorded).count();
    assert_eq!(recorded, 1);
}

pub(crate) async fn no_claim_wins_after_a_pause_has_returned(site: &Site<impl Fixture>) {
    for round in 0..20 {
        let firing = later(&site.firing(HOUR / 2).await, SECOND * round);
        let mut claims = tokio::task::JoinSet::new();
        for n in 0..40 {
            let (ledger, firing) = (site.opened.ledger.clone(), later(&firing, MILLI * n));
            let request = ClaimRequest { exclusive: false, ..fresh(&firing) };
            let request = ClaimRequest {
                entry: runner::internal::ledger::Entry::Fresh { not_after: HOUR * 2 },
                ..request
            };
            claims.spawn(async move { ledger.claim(&request).await.expect("an answer") });
        }
        assert!(site.opened.operators.pause("a", "me", "note").await.unwrap());
        let when_paused = all(site).await.len();
        let won = claims.join_all().await.into_iter().filter(|claim| matches!(claim, Claim::Won(_))).count();
        assert_eq!(all(site).await.len(), when_paused, "round {round}: {won} won in all");
        site.opened.operators.resume("a").await.unwrap();
    }
}

pub(crate) async fn a_pruned_firing_never_runs_again(site: &Site<impl Fixture>) {
    for round in 0..20 {
        // A job of its own for each round: the watermark of the last one is past everything.
        let name = format!("job-{round}");
        site.register(&[&name]).await;
        let firing = Firing { job: JobName::new(&name).unwrap(), ..site.firing(SECOND).await };
        let won = site.win(&fresh(&firing)).await;
        site.settle(run(won), succeeded()).await;
        let mut claims = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let (ledger, request) = (site.opened.ledger.clone(), fresh(&firing));
            claims.spawn(async move { ledger.claim(&request).await.expect("an answer") });
        }
        let removed = site.prune_all().await;
        assert_eq!(removed, 1);
        for claim in claims.join_all().await {
            assert!(matches!(claim, Claim::Duplicate(_) | Claim::Pruned), "round {round}: {claim:?}");
        }
        assert_eq!(site.claim(&fresh(&firing)).await, Claim::Pruned);
        let skip = site.opened.ledger.skip(&skipping(&firing, Reason::Missed)).await.unwrap();
        assert_eq!(skip, runner::internal::ledger::Skipped::Refused);
    }
}

pub(crate) async fn the_later_claim_has_the_higher_fence(site: &Site<impl Fixture>) {
    let firing = site.firing(HOUR / 2).await;
    let mut fences = HashSet::new();
    for round in 0..10 {
        let claims = (0..40).map(|n| {
            let ledger = site.opened.ledger.clone();
            let firing = later(&firing, SECOND * round + MILLI * n);
            let request = ClaimRequest { exclusive: false, ..fresh(&firing) };
            async move {
                match ledger.claim(&request).await.expect("an answer") {
                    Claim::Won(won) => won,
                    no => panic!("should have won: {no:?}"),
                }
            }
        });
        let mut won = at_once(claims).await;
        won.sort_by_key(|won| won.fence);
        assert!(won.is_sorted_by_key(|won| won.started_at), "round {round}: {won:?}");
        fences.extend(won.iter().map(|won| won.fence));
    }
    assert_eq!(fences.len(), 400);
}

async fn all(site: &Site<impl Fixture>) -> Vec<runner::internal::ledger::FiringRow> {
    eventually("the history is read", async || {
        site.opened.reader.history(&HistoryFilter::default()).await.map_err(|error| error.to_string())
    })
    .await
}
