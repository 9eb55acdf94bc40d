//! Transactions of runs in a SQLite file: while one is open nobody else writes.

use std::time::Duration;

use runner::EffectError;
use runner::internal::firing::{Delivery, State};
use runner::internal::ledger::Heartbeat;
use tokio::task::JoinSet;

use crate::fixture::sqlite::Sqlite;
use crate::fixture::work::{beat, context, notes, prepare, say, work};
use crate::fixture::{HOUR, Site, run};

const SECOND: Duration = Duration::from_secs(1);

/// Counts for longer than anybody waits.
const ENDLESS: &str = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)
    INSERT INTO notes SELECT i FROM n WHERE i < 0";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_lasts_a_third_of_the_lease_and_then_lets_the_others_go_on() {
    let site = Site::<Sqlite>::open().await;
    prepare(&site).await;
    let run = run(site.run().await);
    let mut transaction = context(&site, run, 1, SECOND).await.transaction().await.unwrap();
    work(&mut transaction).await;
    assert!(say(&mut transaction, ENDLESS).await.is_err(), "it was not stopped");
    let refusal = transaction.commit().await.unwrap_err();
    assert!(matches!(refusal, EffectError::TooLong { .. }), "{refusal:?}");
    assert_eq!(beat(&site.opened, run).await, Heartbeat::Alive { cancel_requested: false });
    assert_eq!(notes(&site).await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_takes_a_run_over_while_its_transaction_is_open() {
    let site = Site::<Sqlite>::open().await;
    prepare(&site).await;
    let abandoned = site.abandoned(Delivery::AtLeastOnce).await;
    let suspect = site.suspect(abandoned).await;
    let mut transaction = context(&site, abandoned, 1, HOUR).await.transaction().await.unwrap();
    work(&mut transaction).await;
    let sweeping = site.opened.sweeping.clone();
    let mut sweep = JoinSet::new();
    sweep.spawn(async move { sweeping.sweep(&[suspect]).await.unwrap() });
    let early = tokio::time::timeout(Duration::from_millis(200), sweep.join_next()).await;
    assert!(early.is_err(), "{early:?}");
    transaction.commit().await.unwrap();
    assert_eq!(sweep.join_all().await, [[]]);
    assert_eq!(site.state(abandoned.id).await.0, State::Succeeded);
    assert_eq!(notes(&site).await, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_whose_run_was_dropped_lets_the_file_go() {
    let site = Site::<Sqlite>::open().await;
    prepare(&site).await;
    let run = run(site.run().await);
    let mut transaction = context(&site, run, 1, HOUR).await.transaction().await.unwrap();
    let given_up = tokio::time::timeout(Duration::from_millis(100), say(&mut transaction, ENDLESS)).await;
    assert!(given_up.is_err(), "{given_up:?}");
    drop(transaction);
    let alive = tokio::time::timeout(SECOND * 2, beat(&site.opened, run)).await;
    assert_eq!(alive, Ok(Heartbeat::Alive { cancel_requested: false }));
}
