//! What others have done and not yet committed: PostgreSQL shows a statement the rows as they were when it
//! began, so each of these is decided by a lock.

use std::fmt::Debug;
use std::time::Duration;

use runner::internal::firing::{Delivery, Reason, State};
use runner::internal::ledger::{
    Answer, Claim, Decision, Enqueue, Enqueued, Gap, HistoryFilter, Horizon, Question, Run, Skipped,
};

use testbed::PrivatePostgres;

use super::holder::{Holder, waits_for_a_lock};
use super::servers::{count, pretend};
use crate::fixture::{
    Fixture as _, HOUR, Postgres, Site, fresh, later, run, skipping, succeeded, suspect, take, waiting,
};

const SECOND: Duration = Duration::from_secs(1);

/// The answer to a question that has to wait until `holder` lets go.
async fn after<T: Debug>(site: &Site<Postgres>, holder: Holder<'_>, mut question: Answer<'_, T>) -> T {
    tokio::select! {
        answer = &mut question => panic!("it did not wait: {answer:?}"),
        () = waits_for_a_lock(site, 1) => {}
    }
    holder.let_go();
    question.await.expect("an answer")
}

async fn horizon(site: &Site<Postgres>) -> Horizon {
    let questions = [Question { job: "a".into(), reach_back: Duration::ZERO }];
    site.opened.gaps.horizons(&questions).await.expect("the horizon").remove(0)
}

async fn decision(site: &Site<Postgres>, gap: &runner::internal::firing::Firing) -> Decision {
    let decided_until = horizon(site).await.decided_until;
    Decision {
        job: "a".into(),
        decided_until,
        until: site.now().await,
        exclusive: true,
        delivery: Delivery::AtLeastOnce,
        expires_in: HOUR,
        gaps: vec![Gap { scheduled_at: gap.scheduled_at, shard: 0, run: true, detail: None }],
    }
}

const PAUSE: &str =
    "UPDATE runner_jobs SET paused_at = clock_timestamp() WHERE namespace = 'test' AND name = 'a'";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pause_in_flight_is_waited_for() {
    let site = Site::<Postgres>::open().await;
    let firing = site.firing(SECOND * 9).await;
    let id = site.queued(&firing).await;
    let next = later(&firing, SECOND);
    let (claim, queued) = (fresh(&next), take(&firing, id));
    for request in [&claim, &queued] {
        let answer = site.opened.ledger.claim(request);
        assert_eq!(after(&site, Holder::of(&site, PAUSE).await, answer).await, Claim::Paused);
        site.opened.operators.resume("a").await.unwrap();
    }
    let enqueue: Enqueue = waiting(&next, Reason::Trigger);
    let answer = site.opened.queue.enqueue(&enqueue);
    assert_eq!(after(&site, Holder::of(&site, PAUSE).await, answer).await, Enqueued::Refused);
    site.opened.operators.resume("a").await.unwrap();
    let decision = decision(&site, &next).await;
    let answer = site.opened.gaps.decide(&decision);
    assert!(after(&site, Holder::of(&site, PAUSE).await, answer).await);
    let rows = site.opened.reader.history(&HistoryFilter::default()).await.unwrap();
    assert_eq!(rows.len(), 2);
    assert_eq!((&rows[0].state, &rows[0].reason), (&State::Skipped.into(), &Some(Reason::Paused.into())));
    assert_eq!(site.state(id).await.0, State::Queued);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prune_in_flight_is_waited_for() {
    const PRUNE: &str = "UPDATE runner_jobs SET pruned_before = clock_timestamp()
        WHERE namespace = 'test' AND name = 'a'; DELETE FROM runner_firings";
    const FORGET: &str = "UPDATE runner_jobs SET pruned_before = NULL";
    let site = Site::<Postgres>::open().await;
    let firing = site.firing(SECOND * 9).await;
    let ended = async || {
        site.sql(FORGET);
        let won = site.win(&fresh(&firing)).await;
        site.settle(run(won), succeeded()).await;
        Holder::of(&site, PRUNE).await
    };
    let (claim, enqueue, skip) =
        (fresh(&firing), waiting(&firing, Reason::Trigger), skipping(&firing, Reason::Missed));
    assert_eq!(after(&site, ended().await, site.opened.ledger.claim(&claim)).await, Claim::Pruned);
    assert_eq!(after(&site, ended().await, site.opened.queue.enqueue(&enqueue)).await, Enqueued::Refused);
    assert_eq!(after(&site, ended().await, site.opened.ledger.skip(&skip)).await, Skipped::Refused);
    let decision = decision(&site, &firing).await;
    assert!(after(&site, ended().await, site.opened.gaps.decide(&decision)).await);
    assert!(site.opened.reader.history(&HistoryFilter::default()).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_in_flight_is_waited_for() {
    let site = Site::<Postgres>::open().await;
    let decision = decision(&site, &site.firing(SECOND * 9).await).await;
    let other = "UPDATE runner_jobs SET reconciled_until = clock_timestamp() WHERE name = 'a'";
    let answer = site.opened.gaps.decide(&decision);
    assert!(!after(&site, Holder::of(&site, other).await, answer).await);
    assert!(site.opened.reader.history(&HistoryFilter::default()).await.unwrap().is_empty());
}

/// The claim, as it locks the job, meets the old row: were that one gone already, both would wait for each other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_prune_removes_nothing_before_a_claim_in_flight_is_through() {
    let url = Postgres::new().url();
    // The server must not end one of them in favour of the other, which would then try again.
    let database = PrivatePostgres::sql_at(&url, "SELECT current_database()");
    PrivatePostgres::sql_at(&url, &format!("ALTER DATABASE {database} SET deadlock_timeout = '10min'"));
    let site = Site::<Postgres>::at(url).await;
    let won = site.win(&fresh(&site.firing(SECOND * 9).await)).await;
    site.settle(run(won), succeeded()).await;
    let again =
        "INSERT INTO runner_firings (namespace, job, scheduled_at, shard, origin, state, exclusive, delivery,
            due_at, expires_at, created_at)
        SELECT namespace, job, scheduled_at, shard, origin, 'queued', false, delivery, now(), now(), now()
        FROM runner_firings ON CONFLICT DO NOTHING;";
    let claim =
        Holder::with_end(&site, "PERFORM FROM runner_jobs WHERE name = 'a' FOR NO KEY UPDATE", again).await;
    let prune = site.opened.housekeeping.prune(Duration::ZERO, 100);
    assert_eq!(after(&site, claim, prune).await, 1);
    assert!(site.opened.reader.history(&HistoryFilter::default()).await.unwrap().is_empty());
}

/// The answer to a question that must not wait for `holder`.
async fn beside<T>(holder: Holder<'_>, question: Answer<'_, T>) -> T {
    let answer = tokio::time::timeout(SECOND * 10, question).await;
    holder.let_go();
    answer.expect("it waited for what somebody holds").expect("an answer")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_heartbeat_in_flight_makes_the_sweep_miss() {
    let site = Site::<Postgres>::open().await;
    let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
    let suspects = [site.suspect(abandoned).await];
    let heartbeat = "UPDATE runner_firings SET lease_until = clock_timestamp() + interval '1 hour'";
    let sweep = site.opened.sweeping.sweep(&suspects);
    assert_eq!(beside(Holder::of(&site, heartbeat).await, sweep).await, []);
    assert_eq!(site.state(abandoned.id).await.0, State::Running);
    let seen = site.opened.sweeping.running().await.unwrap().remove(0);
    assert_eq!(site.sweep(&[suspect(&seen)]).await, [], "it lives");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_claim_in_flight_keeps_its_row_from_expiring() {
    let site = Site::<Postgres>::open().await;
    let expired =
        Enqueue { expires_in: Duration::ZERO, ..waiting(&site.firing(SECOND).await, Reason::Trigger) };
    let Enqueued::Queued(id) = site.enqueue(&expired).await else { panic!("not queued") };
    let claim =
        "UPDATE runner_firings SET state = 'running', attempt = 1, fence = 1, claim_id = gen_random_uuid(),
        owner = 'me', lease_until = now(), started_at = now()";
    assert_eq!(beside(Holder::of(&site, claim).await, site.opened.queue.expire(10)).await, []);
    assert_eq!(site.state(id).await.0, State::Running);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_in_flight_is_waited_for_before_its_outcome_is_told() {
    let site = Site::<Postgres>::open().await;
    let run: Run = run(site.run().await);
    let commit = "UPDATE runner_firings SET state = 'succeeded', finished_at = now(), lease_until = NULL";
    let committed = site.opened.effects.committed(run);
    assert!(after(&site, Holder::of(&site, commit).await, committed).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_adoption_in_flight_is_not_made_twice() {
    let site = Site::<Postgres>::open().await;
    pretend(&site, 8, 1);
    let before = count(&site);
    let holder = Holder::of(&site, "UPDATE runner_server SET system = 8, timeline = 1").await;
    assert_eq!(after(&site, holder, site.opened.housekeeping.adopt()).await, None);
    assert_eq!(count(&site), before, "whoever adopts it moves the count, and nobody else");
}
