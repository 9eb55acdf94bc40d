//! Transactions of runs in PostgreSQL: sessions that are thrown out, and what their server decides by itself.

use std::time::Duration;

use runner::EffectError;
use runner::internal::firing::{Delivery, Reason, State};
use runner::internal::ledger::Heartbeat;
use tokio::task::JoinSet;

use crate::fixture::work::{beat, context, notes, prepare, say, sweep, work};
use crate::fixture::{HOUR, Postgres, Site, eventually, fresh, other_job, run, take};

const SECOND: Duration = Duration::from_secs(1);

/// Sessions at work on something that does not end by itself. The server has other tests too.
const ASLEEP: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE wait_event = 'PgSleep' AND datname = current_database()";
/// Sessions with a transaction of a run.
const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE application_name LIKE 'runner effect %' AND datname = current_database()";

async fn until(site: &Site<Postgres>, sessions: &str, wanted: &str) {
    eventually(sessions, async || match site.sql(sessions) {
        found if found == wanted => Ok(()),
        found => Err(found),
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_takeover_in_between_undoes_the_work() {
    let site = Site::<Postgres>::open().await;
    prepare(&site).await;
    let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
    let ctx = context(&site, abandoned, 1, HOUR).await;
    let mut transaction = ctx.transaction().await.unwrap();
    work(&mut transaction).await;
    sweep(&site, abandoned).await;
    let refusal = transaction.commit().await.unwrap_err();
    assert!(matches!(refusal, EffectError::TakenOver), "{refusal:?}");
    assert_eq!(notes(&site).await, 0);
    assert_eq!(site.state(abandoned.id).await, (State::Queued, Some(Reason::OwnerLost)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_successor_at_work_undoes_the_work() {
    let site = Site::<Postgres>::open().await;
    prepare(&site).await;
    let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
    let mut transaction = context(&site, abandoned, 1, HOUR).await.transaction().await.unwrap();
    work(&mut transaction).await;
    sweep(&site, abandoned).await;
    let next = run(site.win(&take(&site.firing(SECOND).await, abandoned.id)).await);
    let refusal = transaction.commit().await.unwrap_err();
    assert!(matches!(refusal, EffectError::TakenOver), "{refusal:?}");
    assert_eq!(notes(&site).await, 0);
    assert_eq!(beat(&site.opened, next).await, Heartbeat::Alive { cancel_requested: false });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heartbeats_go_on_beside_an_open_transaction_also_where_it_is_serializable() {
    let site = Site::<Postgres>::open().await;
    prepare(&site).await;
    let database = site.sql("SELECT current_database()");
    site.sql(&format!("ALTER DATABASE {database} SET default_transaction_isolation = 'serializable'"));
    let run = run(site.run().await);
    let mut transaction = context(&site, run, 1, HOUR).await.transaction().await.unwrap();
    work(&mut transaction).await;
    let in_time =
        tokio::time::timeout(SECOND * 5, beat(&site.opened, run)).await.expect("no lock in the way");
    assert_eq!(in_time, Heartbeat::Alive { cancel_requested: false });
    transaction.commit().await.unwrap();
    assert_eq!(notes(&site).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_that_falls_silent_is_thrown_out_within_its_lease() {
    let site = Site::<Postgres>::open().await;
    prepare(&site).await;
    let run = run(site.run().await);
    let lease = SECOND * 2;
    let mut transaction = context(&site, run, 1, lease).await.transaction().await.unwrap();
    work(&mut transaction).await;
    assert_eq!(site.sql(SESSIONS), "1");
    let thrown_out = until(&site, SESSIONS, "0");
    tokio::time::timeout(lease, thrown_out).await.expect("within the lease");
    assert!(transaction.commit().await.is_err());
    assert_eq!(notes(&site).await, 0);
    assert_eq!(site.state(run.id).await.0, State::Running);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_next_attempt_throws_out_what_the_last_one_left_at_work() {
    let site = Site::<Postgres>::open().await;
    prepare(&site).await;
    let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
    let mut left = context(&site, abandoned, 1, HOUR).await.transaction().await.unwrap();
    let firing = other_job(&site.firing(SECOND).await);
    let another = run(site.win(&fresh(&firing)).await);
    let others = context(&site, another, 1, HOUR).await.transaction().await.unwrap();
    let mut asleep = JoinSet::new();
    asleep.spawn(async move {
        let slept = say(&mut left, "INSERT INTO notes VALUES ('first'); SELECT pg_sleep(600)").await;
        (slept.is_err(), left.commit().await.is_err())
    });
    until(&site, ASLEEP, "1").await;
    sweep(&site, abandoned).await;
    let next = run(site.win(&take(&site.firing(SECOND).await, abandoned.id)).await);
    let ctx = context(&site, next, 2, HOUR).await;
    let begun = tokio::time::timeout(SECOND * 20, ctx.transaction()).await;
    let mut transaction = begun.expect("it is not thrown out itself").unwrap();
    let ended = tokio::time::timeout(SECOND * 20, asleep.join_all()).await.expect("it is thrown out");
    assert_eq!(ended, [(true, true)]);
    others.commit().await.expect("another firing's transaction goes on");
    work(&mut transaction).await;
    transaction.commit().await.unwrap();
    assert_eq!(notes(&site).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn work_may_look_for_its_tables_elsewhere() {
    let site = Site::<Postgres>::open().await;
    let run = run(site.run().await);
    let mut transaction = context(&site, run, 1, HOUR).await.transaction().await.unwrap();
    say(&mut transaction, "CREATE SCHEMA billing; SET search_path = billing; CREATE TABLE bills (n int)")
        .await
        .unwrap();
    transaction.commit().await.unwrap();
    assert_eq!(site.state(run.id).await.0, State::Succeeded);
    assert_eq!(site.sql("SELECT count(*) FROM billing.bills"), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_statement_that_was_passed_over_lets_nothing_commit() {
    let site = Site::<Postgres>::open().await;
    prepare(&site).await;
    let run = run(site.run().await);
    let mut transaction = context(&site, run, 1, HOUR).await.transaction().await.unwrap();
    work(&mut transaction).await;
    assert!(say(&mut transaction, "SELECT 1 / 0").await.is_err());
    assert!(matches!(transaction.commit().await, Err(EffectError::Broken)));
    assert_eq!(notes(&site).await, 0);
    assert_eq!(site.state(run.id).await.0, State::Running);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_constraint_that_is_checked_at_the_commit_ends_nothing() {
    let site = Site::<Postgres>::open().await;
    site.sql("CREATE TABLE notes (text text UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    let run = run(site.run().await);
    let mut transaction = context(&site, run, 1, HOUR).await.transaction().await.unwrap();
    work(&mut transaction).await;
    work(&mut transaction).await;
    let refusal = transaction.commit().await.unwrap_err();
    assert!(matches!(refusal, EffectError::Ledger(_)), "{refusal:?}");
    assert_eq!(site.state(run.id).await.0, State::Running);
    assert_eq!(notes(&site).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_whose_run_was_dropped_does_not_go_on_for_long() {
    let site = Site::<Postgres>::open().await;
    let run = run(site.run().await);
    let mut transaction = context(&site, run, 1, HOUR).await.transaction().await.unwrap();
    tokio::select! {
        slept = say(&mut transaction, "SELECT pg_sleep(600)") => panic!("{slept:?}"),
        () = until(&site, ASLEEP, "1") => {}
    }
    drop(transaction);
    until(&site, ASLEEP, "0").await;
}
