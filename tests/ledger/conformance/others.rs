//! Rows that are nobody's business: neighbours in one table, which nothing may touch or answer for.

use std::time::Duration;

use runner::internal::firing::{Delivery, Firing, Origin, Reason, State};
use runner::internal::ledger::{
    AttemptRow, Claim, ClaimRequest, Enqueue, Enqueued, Entry, FiringRow, Heartbeat, HistoryFilter,
    JobRegistration, JobRow, Opened, Run, Running, Settled, Settlement, Skip, Skipped, Suspect, Won,
};

use crate::fixture::{
    Fixture, HOUR, Site, ended, found, fresh, later, other_job, requeue, run, skipping, succeeded, suspect,
    take, waiting,
};

const SECOND: Duration = Duration::from_secs(1);

/// Another deployment in the same database, with the same jobs and something in every state.
#[derive(Debug)]
pub(crate) struct Others {
    opened: Opened,
    before: (Vec<FiringRow>, Vec<JobRow>),
}

impl Others {
    pub(crate) async fn beside(site: &Site<impl Fixture>) -> Self {
        let opened = site.neighbour("elsewhere").await;
        let jobs = ["a", "b"].map(|name| JobRegistration { name: name.into(), spec_hash: "2".into() });
        opened.housekeeping.register(&jobs).await.expect("registered");
        let firing = site.firing(HOUR / 2).await;
        for (number, ending) in [succeeded(), requeue(Reason::Retry)].into_iter().enumerate() {
            let firing = later(&firing, SECOND * u32::try_from(number).expect("a small number"));
            let won = won(opened.ledger.claim(&fresh(&firing)).await.expect("an answer"));
            let settlement = Settlement { run: run(won), ending, crashed: false, error: None, output: None };
            assert_eq!(opened.ledger.settle(&settlement).await.expect("an answer"), Settled::Recorded);
        }
        let expired = Firing { trigger_key: "expired".into(), ..firing.clone() };
        let expired = Enqueue { expires_in: Duration::ZERO, ..waiting(&expired, Reason::Trigger) };
        let free = Firing { trigger_key: "free".into(), ..firing.clone() };
        let free = Enqueue { exclusive: false, ..waiting(&free, Reason::Trigger) };
        for enqueue in [waiting(&later(&firing, SECOND * 2), Reason::Overlap), free, expired] {
            let enqueued = opened.queue.enqueue(&enqueue).await.expect("an answer");
            assert!(matches!(enqueued, Enqueued::Queued(_)), "{enqueued:?}");
        }
        let abandoned = ClaimRequest { lease: Duration::ZERO, ..fresh(&later(&firing, SECOND * 3)) };
        won(opened.ledger.claim(&abandoned).await.expect("an answer"));
        let before = Self::seen(&opened).await;
        Self { opened, before }
    }

    pub(crate) async fn are_as_they_were(&self) {
        assert_eq!(Self::seen(&self.opened).await, self.before);
    }

    async fn seen(opened: &Opened) -> (Vec<FiringRow>, Vec<JobRow>) {
        let rows = opened.reader.history(&HistoryFilter::default()).await.expect("their rows");
        (rows, opened.reader.jobs().await.expect("their jobs"))
    }
}

fn won(claim: Claim) -> Won {
    match claim {
        Claim::Won(won) => won,
        no => panic!("should have won: {no:?}"),
    }
}

/// Firings that differ from `firing` in one part of their identity each.
fn neighbours(firing: &Firing) -> [Firing; 4] {
    [
        other_job(firing),
        later(firing, SECOND),
        Firing { shard: 1, ..firing.clone() },
        Firing { trigger_key: "key".into(), ..firing.clone() },
    ]
}

/// A claim that keeps nobody else from running.
fn beside(firing: &Firing) -> ClaimRequest {
    ClaimRequest { exclusive: false, ..fresh(firing) }
}

async fn rows(site: &Site<impl Fixture>) -> Vec<FiringRow> {
    site.opened.reader.history(&HistoryFilter::default()).await.expect("the rows")
}

async fn settled(opened: &Opened, run: Run, ending: runner::internal::ledger::Ending) -> Settled {
    let settlement = Settlement { run, ending, crashed: false, error: None, output: None };
    opened.ledger.settle(&settlement).await.expect("an answer to the settle")
}

/// What every statement about one firing does to the others, and whose row it answers with.
pub(crate) async fn a_claim_meets_the_row_of_its_own_firing_only(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    let other = site.neighbour("other").await;
    other
        .housekeeping
        .register(&[JobRegistration { name: "a".into(), spec_hash: "1".into() }])
        .await
        .unwrap();
    won(other.ledger.claim(&beside(&firing)).await.unwrap());
    let mut runs = vec![];
    for neighbour in neighbours(&firing) {
        runs.push((site.win(&beside(&neighbour)).await.id, neighbour));
    }
    let there = rows(site).await;
    let mine = site.win(&beside(&firing)).await.id;
    let mut now = rows(site).await;
    now.retain(|row| row.id != mine);
    assert_eq!(now, there);
    runs.push((mine, firing));
    for (id, firing) in runs {
        let duplicate = site.claim(&beside(&firing)).await;
        assert!(matches!(&duplicate, Claim::Duplicate(found) if found.id == id), "{duplicate:?}");
    }
}

pub(crate) async fn a_skip_or_an_enqueue_meets_the_row_of_its_own_firing_only(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    let other = site.neighbour("other").await;
    other
        .housekeeping
        .register(&[JobRegistration { name: "a".into(), spec_hash: "1".into() }])
        .await
        .unwrap();
    won(other.ledger.claim(&beside(&firing)).await.unwrap());
    let mut there = vec![];
    let ends = [State::Succeeded, State::Failed, State::Lost, State::Cancelled];
    for (neighbour, state) in neighbours(&firing).into_iter().zip(ends) {
        let run = run(site.win(&beside(&neighbour)).await);
        assert_eq!(site.settle(run, ended(state, Reason::Error)).await, Settled::Recorded);
        there.push((run.id, state, neighbour));
    }
    there.push((site.queued(&firing).await, State::Queued, firing));
    for (id, state, firing) in there {
        let skipped = site.opened.ledger.skip(&skipping(&firing, Reason::Missed)).await.unwrap();
        assert_eq!(skipped, Skipped::AlreadyThere(state.into()));
        match site.enqueue(&waiting(&firing, Reason::Trigger)).await {
            Enqueued::AlreadyThere(found) => assert_eq!((found.id, found.state), (id, state.into())),
            no => panic!("should have been there: {no:?}"),
        }
    }
}

pub(crate) async fn an_overlap_names_the_exclusive_run_of_its_own_job_and_shard(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    let shard = Firing { shard: 1, ..firing.clone() };
    let waits = site.queued(&later(&firing, SECOND * 4)).await;
    site.win(&beside(&later(&firing, SECOND))).await;
    site.win(&fresh(&other_job(&firing))).await;
    let on_the_shard = site.win(&fresh(&shard)).await;
    let ended = site.win(&fresh(&later(&firing, SECOND * 2))).await;
    site.settle(run(ended), succeeded()).await;
    let running = site.win(&fresh(&later(&firing, SECOND * 3))).await;
    assert_eq!(found(site.claim(&fresh(&firing)).await).id, running.id);
    let on_the_shard_too = Firing { shard: 1, ..later(&firing, SECOND) };
    assert_eq!(found(site.claim(&fresh(&on_the_shard_too)).await).id, on_the_shard.id);
    let queued = site.claim(&take(&later(&firing, SECOND * 4), waits)).await;
    assert_eq!(found(queued).id, running.id);
}

/// A run that excludes nobody is no overlap either.
pub(crate) async fn only_an_exclusive_run_of_the_job_and_shard_is_an_overlap(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    site.win(&beside(&later(&firing, SECOND))).await;
    site.win(&fresh(&other_job(&firing))).await;
    site.win(&fresh(&Firing { shard: 1, ..firing.clone() })).await;
    let overlap = Skip { only_while_running: true, ..skipping(&firing, Reason::Overlap) };
    assert_eq!(site.opened.ledger.skip(&overlap).await.unwrap(), Skipped::NothingRunning);
    let id = site.queued(&firing).await;
    let due = site.opened.queue.due(&["a".into()], 10).await.unwrap();
    assert_eq!(due.iter().map(|due| due.id).collect::<Vec<_>>(), [id]);
    site.win(&take(&firing, id)).await;
}

pub(crate) async fn a_queued_row_is_taken_alone_and_through_the_gate_of_its_own_job(
    site: &Site<impl Fixture>,
) {
    let firing = site.firing(SECOND * 9).await;
    let id = site.queued(&firing).await;
    let next = site.queued(&later(&firing, SECOND)).await;
    site.opened.operators.pause("a", "me", "note").await.unwrap();
    let through_another_gate = ClaimRequest { entry: Entry::Queued(id), ..fresh(&other_job(&firing)) };
    let claim = site.claim(&through_another_gate).await;
    assert!(!matches!(claim, Claim::Won(_)), "{claim:?}");
    site.opened.operators.resume("a").await.unwrap();
    let other = site.neighbour("other").await;
    let a = JobRegistration { name: "a".into(), spec_hash: "1".into() };
    other.housekeeping.register(&[a]).await.unwrap();
    let from_another_namespace = other.ledger.claim(&take(&firing, id)).await.unwrap();
    assert!(!matches!(from_another_namespace, Claim::Won(_)), "{from_another_namespace:?}");
    assert_eq!(site.state(id).await.0, State::Queued);
    site.win(&ClaimRequest { exclusive: false, ..take(&firing, id) }).await;
    assert_eq!(site.state(next).await, (State::Queued, Some(Reason::Trigger)));
}

pub(crate) async fn a_claim_is_confirmed_for_the_firing_that_was_claimed_only(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    let request = fresh(&firing);
    let won = site.win(&request).await;
    for neighbour in neighbours(&firing) {
        let request = ClaimRequest { firing: neighbour, ..request.clone() };
        assert_eq!(site.opened.ledger.confirm(&request).await.unwrap(), None, "{:?}", request.firing);
    }
    let other = site.neighbour("other").await;
    assert_eq!(other.ledger.confirm(&request).await.unwrap(), None);
    assert_eq!(site.opened.ledger.confirm(&request).await.unwrap(), Some(won));
}

/// Two runs under way, and each one's number with the fence of the other.
async fn two_runs(site: &Site<impl Fixture>) -> ([Run; 2], [Run; 2]) {
    let firing = site.firing(SECOND * 9).await;
    let first = run(site.win(&fresh(&firing)).await);
    let second = run(site.win(&fresh(&other_job(&firing))).await);
    let mixed = [Run { id: first.id, fence: second.fence }, Run { id: second.id, fence: first.fence }];
    ([first, second], mixed)
}

pub(crate) async fn a_run_is_kept_and_ended_by_its_own_number_and_fence_only(site: &Site<impl Fixture>) {
    let (runs, mixed) = two_runs(site).await;
    let other = site.neighbour("other").await;
    let before = rows(site).await;
    for ending in [succeeded(), ended(State::Lost, Reason::Error), requeue(Reason::Retry)] {
        for run in mixed {
            assert_eq!(site.settle(run, ending).await, Settled::Fenced, "{ending:?}");
        }
        for run in runs {
            assert_eq!(settled(&other, run, ending).await, Settled::Fenced, "{ending:?}");
        }
    }
    for run in mixed {
        assert_eq!(site.opened.ledger.heartbeat(run, HOUR * 2).await.unwrap(), Heartbeat::Lost);
    }
    assert_eq!(rows(site).await, before);
    for run in runs {
        assert_eq!(site.opened.reader.attempts(run.id).await.unwrap(), Vec::<AttemptRow>::new());
        assert_eq!(site.settle(run, succeeded()).await, Settled::Recorded);
    }
    for run in mixed {
        assert_eq!(site.settle(run, succeeded()).await, Settled::Fenced, "not recorded either");
    }
    assert_eq!(settled(&other, runs[0], succeeded()).await, Settled::Fenced, "nor for another namespace");
}

pub(crate) async fn an_end_that_was_recorded_is_told_from_any_other(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    let cancelled = runner::internal::ledger::Ending::Terminal { state: State::Cancelled, reason: None };
    let first = run(site.win(&fresh(&firing)).await);
    assert_eq!(site.settle(first, succeeded()).await, Settled::Recorded);
    assert_eq!(site.settle(first, cancelled).await, Settled::Fenced);
    assert_eq!(site.settle(first, requeue(Reason::Retry)).await, Settled::Fenced);
    // One that was requeued is neither another firing's requeue nor another run's.
    let second = run(site.win(&fresh(&later(&firing, SECOND))).await);
    assert_eq!(site.settle(second, requeue(Reason::Retry)).await, Settled::Recorded);
    assert_eq!(site.settle(Run { id: first.id, ..second }, requeue(Reason::Retry)).await, Settled::Fenced);
    assert_eq!(
        site.settle(Run { fence: first.fence, ..second }, requeue(Reason::Retry)).await,
        Settled::Fenced
    );
    let other = site.neighbour("other").await;
    other
        .housekeeping
        .register(&[JobRegistration { name: "a".into(), spec_hash: "1".into() }])
        .await
        .unwrap();
    won(other.ledger.claim(&fresh(&firing)).await.unwrap());
    assert_eq!(settled(&other, second, requeue(Reason::Retry)).await, Settled::Fenced);
    // And one that was cancelled with its requeue is not that of whoever asks.
    let third = run(site.win(&fresh(&other_job(&firing))).await);
    assert!(site.opened.operators.cancel(third.id).await.unwrap());
    assert_eq!(site.settle(third, requeue(Reason::Retry)).await, Settled::Recorded);
    assert_eq!(
        site.settle(Run { fence: first.fence, ..third }, requeue(Reason::Retry)).await,
        Settled::Fenced
    );
    assert_eq!(settled(&other, third, requeue(Reason::Retry)).await, Settled::Fenced);
    assert_eq!(site.settle(third, succeeded()).await, Settled::Fenced, "it was another end");
    let fifth = run(site.win(&fresh(&later(&firing, SECOND * 2))).await);
    assert!(site.opened.operators.cancel(fifth.id).await.unwrap());
    assert_eq!(site.settle(fifth, succeeded()).await, Settled::Recorded);
    assert_eq!(site.settle(fifth, requeue(Reason::Retry)).await, Settled::Fenced, "it came too late");
    let fourth = run(site.win(&fresh(&later(&other_job(&firing), SECOND))).await);
    assert_eq!(site.settle(fourth, cancelled).await, Settled::Recorded);
    assert_eq!(site.settle(fourth, requeue(Reason::Retry)).await, Settled::Fenced, "nobody asked for it");
}

pub(crate) async fn a_run_is_swept_by_its_own_number_fence_and_lease_only(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    let mut seen: Vec<Suspect> = Vec::new();
    for firing in [firing.clone(), other_job(&firing)] {
        let request = ClaimRequest { lease: Duration::ZERO, ..fresh(&firing) };
        seen.push(site.suspect(run(site.win(&request).await)).await);
    }
    let with = |run: Run, seen: &Suspect| Suspect { run, ..seen.clone() };
    let [first, second] = &seen[..] else { panic!("{seen:?}") };
    let mixed = [
        with(Run { id: second.run.id, ..first.run }, first),
        with(Run { id: second.run.id, ..first.run }, second),
        with(Run { fence: second.run.fence, ..first.run }, first),
        with(first.run, second),
    ];
    let before = rows(site).await;
    assert_eq!(site.sweep(&mixed).await, []);
    let other = site.neighbour("other").await;
    assert_eq!(other.sweeping.sweep(&seen).await.unwrap(), []);
    assert_eq!(rows(site).await, before);
    assert_eq!(site.sweep(&seen[..1]).await.len(), 1);
    assert_eq!(site.state(second.run.id).await.0, State::Running);
}

pub(crate) async fn what_ended_or_waits_is_not_running(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    let ended = site.win(&fresh(&firing)).await;
    site.settle(run(ended), succeeded()).await;
    site.queued(&later(&firing, SECOND)).await;
    let requeued = site.win(&fresh(&later(&firing, SECOND * 2))).await;
    site.settle(run(requeued), requeue(Reason::Retry)).await;
    let running = site.run().await;
    let list: Vec<Running> = site.opened.sweeping.running().await.unwrap();
    assert_eq!(list.iter().map(|seen| seen.run).collect::<Vec<_>>(), [run(running)]);
    assert_eq!(site.sweep(&[suspect(&list[0])]).await, []);
}

pub(crate) async fn what_ended_runs_or_has_expired_is_not_due(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    let cancelled = site.queued(&firing).await;
    assert!(site.opened.operators.cancel(cancelled).await.unwrap());
    let short = |key: &str| {
        let firing = Firing { trigger_key: key.into(), ..firing.clone() };
        Enqueue { expires_in: Duration::ZERO, ..waiting(&firing, Reason::Trigger) }
    };
    site.enqueue(&short("short")).await;
    let Enqueued::Queued(cancelled_in_time) = site.enqueue(&short("cancelled")).await else {
        panic!("not queued")
    };
    assert!(site.opened.operators.cancel(cancelled_in_time).await.unwrap());
    let waits = site.queued(&later(&firing, SECOND * 2)).await;
    crate::fixture::eventually("one is left", async || {
        let due = site.opened.queue.due(&["a".into()], 10).await.unwrap();
        let due: Vec<_> = due.iter().map(|due| due.id).collect();
        if due == [waits] { Ok(()) } else { Err(due) }
    })
    .await;
    assert_eq!(site.opened.queue.expire(10).await.unwrap().len(), 1, "only what waits can expire");
    assert_eq!(site.state(cancelled_in_time).await.0, State::Cancelled);
}

pub(crate) async fn a_number_of_another_namespace_leads_nowhere(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND).await;
    let won = site.win(&fresh(&firing)).await;
    site.settle(run(won), requeue(Reason::Retry)).await;
    let other = site.neighbour("other").await;
    assert_eq!(other.reader.firing(won.id).await.unwrap(), None);
    assert_eq!(other.reader.attempts(won.id).await.unwrap(), Vec::<AttemptRow>::new());
    assert!(!other.operators.cancel(won.id).await.unwrap());
    let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
    assert_eq!(site.opened.reader.attempts(won.id).await.unwrap().len(), 1);
    assert!(!other.effects.committed(abandoned).await.unwrap());
    assert_eq!(site.state(won.id).await.0, State::Queued);
    assert_eq!(site.opened.reader.attempts(abandoned.id).await.unwrap(), Vec::<AttemptRow>::new());
}

pub(crate) async fn a_number_leads_to_its_own_row(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    let first = site.queued(&firing).await;
    let second = site.queued(&later(&firing, SECOND)).await;
    for id in [second, first] {
        assert_eq!(site.row(id).await.id, id);
    }
    assert!(site.opened.operators.cancel(second).await.unwrap());
    assert_eq!(site.state(second).await.0, State::Cancelled);
    assert_eq!(site.state(first).await.0, State::Queued);
}

/// Rows may end below their namespace's watermark: what waited in the queue while it was raised.
pub(crate) async fn a_prune_leaves_what_a_neighbour_keeps_below_its_watermark(site: &Site<impl Fixture>) {
    let other = site.neighbour("other").await;
    other
        .housekeeping
        .register(&[JobRegistration { name: "a".into(), spec_hash: "1".into() }])
        .await
        .unwrap();
    let firing = site.firing(SECOND * 9).await;
    let Enqueued::Queued(id) = other.queue.enqueue(&waiting(&firing, Reason::Trigger)).await.unwrap() else {
        panic!("not queued")
    };
    let ended = won(other.ledger.claim(&fresh(&later(&firing, SECOND))).await.unwrap());
    assert_eq!(settled(&other, run(ended), succeeded()).await, Settled::Recorded);
    crate::fixture::eventually("it is in the past", async || {
        match other.housekeeping.prune(Duration::ZERO, 10).await.unwrap() {
            0 => Err(()),
            _ => Ok(()),
        }
    })
    .await;
    let late = won(other.ledger.claim(&take(&firing, id)).await.unwrap());
    assert_eq!(settled(&other, run(late), succeeded()).await, Settled::Recorded);
    let mine = site.run().await;
    site.settle(run(mine), succeeded()).await;
    assert_eq!(site.prune_all().await, 1);
    assert!(other.reader.firing(id).await.unwrap().is_some());
}

pub(crate) async fn the_reason_of_a_no_is_that_of_its_own_job(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    let overlap = |firing: &Firing| Skip { only_while_running: true, ..skipping(firing, Reason::Overlap) };
    // In either order of the names.
    for firing in [firing.clone(), other_job(&firing)] {
        let (job, operators) = (firing.job.as_str(), &site.opened.operators);
        assert!(operators.pause(job, "me", "note").await.unwrap());
        assert_eq!(site.claim(&fresh(&firing)).await, Claim::Paused);
        assert_eq!(site.enqueue(&waiting(&firing, Reason::Trigger)).await, Enqueued::Refused);
        assert_eq!(site.opened.ledger.skip(&overlap(&firing)).await.unwrap(), Skipped::NothingRunning);
        assert!(operators.resume(job).await.unwrap());
    }
    for firing in [other_job(&firing), firing] {
        let won = site.win(&fresh(&firing)).await;
        site.settle(run(won), succeeded()).await;
        assert_eq!(site.prune_all().await, 1);
        assert_eq!(site.claim(&fresh(&firing)).await, Claim::Pruned);
        assert_eq!(site.enqueue(&waiting(&firing, Reason::Trigger)).await, Enqueued::Refused);
        assert_eq!(site.opened.ledger.skip(&overlap(&firing)).await.unwrap(), Skipped::Refused);
    }
}

pub(crate) async fn a_pause_is_that_of_its_own_namespace(site: &Site<impl Fixture>) {
    let other = site.neighbour("other").await;
    other
        .housekeeping
        .register(&[JobRegistration { name: "a".into(), spec_hash: "1".into() }])
        .await
        .unwrap();
    assert!(other.operators.pause("a", "they", "note").await.unwrap());
    let firing = site.firing(SECOND * 9).await;
    let id = site.queued(&firing).await;
    let due = site.opened.queue.due(&["a".into()], 10).await.unwrap();
    assert_eq!(due.iter().map(|due| due.id).collect::<Vec<_>>(), [id]);
    site.win(&take(&firing, id)).await;
    assert!(site.opened.operators.resume("a").await.unwrap());
    assert!(other.reader.jobs().await.unwrap()[0].paused_at.is_some());
}

pub(crate) async fn the_waiting_overlap_is_one_of_its_own_job_and_shard(site: &Site<impl Fixture>) {
    let firing = site.firing(SECOND * 9).await;
    site.run().await;
    let elsewhere = [other_job(&firing), Firing { shard: 1, ..firing.clone() }];
    for firing in elsewhere {
        assert!(matches!(site.enqueue(&waiting(&firing, Reason::Overlap)).await, Enqueued::Queued(_)));
    }
    site.queued(&later(&firing, SECOND)).await;
    assert!(matches!(site.enqueue(&waiting(&firing, Reason::Overlap)).await, Enqueued::Queued(_)));
    let second = Firing { origin: Origin::Manual, ..later(&firing, SECOND * 2) };
    assert_eq!(site.enqueue(&waiting(&second, Reason::Overlap)).await, Enqueued::WaitingAlready);
}
