//! The standby that is promoted lacks the last commits. That is the one thing that voids the promises: what
//! is lost is stated here, and what holds all the same.

use std::collections::{BTreeMap, BTreeSet};

use sqlx::PgPool;
use testbed::scene::{QUICK, SECOND, START, end};
use testbed::{Effect, Mode, PrivatePostgres, let_pass};

use super::stage::{ALARM, Stage, TIMELINE, assert_fences_grow, assert_told_once, start, starts};
use crate::receivers::{database, payout};

/// The receiver of docs/receivers.md, which is told of every run in the order in which they began.
struct Receiver {
    db: PgPool,
}

impl Receiver {
    async fn new(server: &PrivatePostgres) -> Self {
        Self { db: database(server).await }
    }

    async fn hear(&self, of: &Effect) -> u16 {
        payout(&self.db, &of.key, &of.job, of.fence, 1).await.unwrap()
    }

    async fn paid(&self) -> i64 {
        sqlx::query_scalar("SELECT count(*) FROM payouts").fetch_one(&self.db).await.unwrap()
    }
}

#[test]
fn after_a_lagging_standby_is_promoted_firings_run_again_only_with_higher_fences() {
    let stage = Stage::new();
    let deployment = stage.deployment().job("tick", QUICK, "every = \"1s\"");
    let mut replicas = start(&deployment, 3);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 3, START);
    stage.standby.wait_replayed(&stage.primary.log_position());
    stage.stream.set(Mode::Stall);
    // The log counts the fence's sequence ahead, by some dozens. A busy ledger outruns that: so does this.
    let busy = "SELECT count(nextval('runner_fence')) FROM generate_series(1, 100)";
    PrivatePostgres::sql_at(&stage.on(&stage.primary), busy);
    let known = effects.instants("tick").len();
    effects.wait_for_starts("tick", known + 4, START);
    stage.primary.stop();
    let before = starts(&deployment).len();
    let had_run: BTreeSet<_> = starts(&deployment).into_iter().map(|start| start.scheduled_at).collect();
    stage.standby.promote();
    let kept = PrivatePostgres::sql_at(&stage.on(&stage.standby), "SELECT count(*) FROM runner_firings");
    stage.lead_to(&stage.standby);
    let ticks = effects.instants("tick").len();
    effects.wait_for_starts("tick", ticks + 5, START);
    assert_told_once(&replicas, ALARM);
    end(&mut replicas);

    // What is lost: rows of firings that have run, acknowledged and all. Some of them have run again.
    assert!(kept.parse::<usize>().unwrap() < had_run.len(), "{kept} rows of {} are left", had_run.len());
    let all = starts(&deployment);
    let (old, new) = all.split_at(before);
    let again: Vec<_> = new.iter().filter(|start| had_run.contains(&start.scheduled_at)).collect();
    assert!(!again.is_empty(), "no firing has run a second time: {all:#?}");

    // What holds: the sequence went back, and the fences did not.
    let count = |start: &Effect| start.fence % TIMELINE;
    assert!(new.iter().map(count).min() < old.iter().map(count).max(), "the sequence did not go back");
    assert_fences_grow(&all, before, 2);
    let first: BTreeMap<_, _> = old.iter().map(|start| (start.scheduled_at, start)).collect();
    for second in &again {
        let first = first[&second.scheduled_at];
        assert_eq!(first.key, second.key, "a receiver that remembers keys does the work once");
        assert!(first.fence < second.fence, "{first:?} {second:?}");
    }
    // Nothing has run twice on the new server, and whatever ran there has its row.
    let rows = deployment.history("tick");
    let fences: BTreeSet<_> = rows.iter().filter_map(|row| row["fence"].as_i64()).collect();
    assert!(new.iter().all(|start| fences.contains(&start.fence)), "{new:#?} {rows:#?}");
    let instants: BTreeSet<_> = new.iter().map(|start| start.scheduled_at).collect();
    assert_eq!(instants.len(), new.len(), "{new:#?}");

    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let receiver = Receiver::new(&stage.standby).await;
        for start in &all {
            assert_eq!(receiver.hear(start).await, 200, "{start:?}");
        }
        // The last run of the former server, frozen since, gets its word out at last.
        assert_eq!(receiver.hear(old.last().unwrap()).await, 409);
        let keys: BTreeSet<_> = all.iter().map(|start| &start.key).collect();
        assert_eq!(receiver.paid().await, i64::try_from(keys.len()).unwrap());
    });
}

#[test]
fn a_former_primary_gets_no_rows_from_a_replica_that_knows_its_successor() {
    let stage = Stage::new();
    let deployment = stage.deployment().job("tick", QUICK, "every = \"1s\"");
    let mut replicas = start(&deployment, 2);
    let effects = deployment.effects();
    effects.wait_for_starts("tick", 2, START);
    stage.stream.set(Mode::Stall);
    stage.standby.promote();
    stage.lead_to(&stage.standby);
    assert_told_once(&replicas, ALARM);
    let ticks = effects.instants("tick").len();
    effects.wait_for_starts("tick", ticks + 2, START);
    // The address is led back, to a server that knows nothing of all this and would take any row.
    let marks: Vec<_> = replicas.iter().map(|replica| replica.lines().mark()).collect();
    stage.lead_to(&stage.primary);
    for (replica, mark) in replicas.iter().zip(&marks) {
        replica.lines().wait_for(*mark, START, |line| line.contains("a promoted standby has replaced"));
    }
    // A claim that was on its way when the address changed has landed by now.
    let_pass(SECOND);
    let claimed =
        || PrivatePostgres::sql_at(&stage.on(&stage.primary), "SELECT last_value FROM runner_fence");
    let (before, there) = (starts(&deployment).len(), claimed());
    let_pass(4 * SECOND);
    assert_eq!((starts(&deployment).len(), claimed()), (before, there), "a row went to the former primary");
    stage.lead_to(&stage.standby);
    effects.wait_for_starts("tick", effects.instants("tick").len() + 3, START);
    for (replica, mark) in replicas.iter().zip(marks) {
        let told = replica.lines().since(mark).into_iter();
        assert_eq!(told.filter(|line| line.contains("a promoted standby has replaced")).count(), 1);
    }
    assert_told_once(&replicas, ALARM);
    end(&mut replicas);
}
