//! Words that only a newer program knows: they are shown as they stand there, and stop nothing.

use std::time::Duration;

use runner::internal::firing::{Firing, Origin, Reason, State, Word};
use runner::internal::ledger::{Claim, FiringId, HistoryFilter, Skipped};
use sqlx::{Connection as _, SqliteConnection};

use crate::fixture::sqlite::Sqlite;
use crate::fixture::{Fixture, Postgres, Site, fresh, later, run, skipping, succeeded};

const SECOND: Duration = Duration::from_secs(1);

/// Three rows: two that wait, and one that has ended.
async fn three_rows(site: &Site<impl Fixture>) -> (Firing, [FiringId; 3]) {
    let ended = site.firing(SECOND * 9).await;
    let won = site.win(&fresh(&ended)).await;
    site.settle(run(won), succeeded()).await;
    let waiting = site.queued(&later(&ended, SECOND)).await;
    let known = site.queued(&later(&ended, SECOND * 2)).await;
    (ended, [won.id, waiting, known])
}

/// As a newer program would have written them.
fn rewrite([ended, waiting, _]: [FiringId; 3]) -> String {
    format!(
        "UPDATE runner_firings SET origin = 'echo', reason = 'at_rest' WHERE id = {};
         UPDATE runner_firings SET state = 'asleep' WHERE id = {}",
        waiting.0, ended.0
    )
}

async fn nothing_is_stopped(site: &Site<impl Fixture>, ended: &Firing, ids: [FiringId; 3]) {
    let rows = site.opened.reader.history(&HistoryFilter::default()).await.unwrap();
    let words: Vec<_> = rows.iter().map(|row| (row.id, row.state.as_str(), row.origin.as_str())).collect();
    let [asleep, echo, known] = ids;
    assert_eq!(
        words,
        [(known, "queued", "schedule"), (echo, "queued", "echo"), (asleep, "asleep", "schedule")]
    );
    assert_eq!(rows[1].reason, Some(Word::<Reason>::Foreign("at_rest".into())));
    assert_eq!(site.opened.reader.counts().await.unwrap().len(), 2);
    // What this program cannot name it does not run; the others have their turn.
    let due = site.opened.queue.due(&["a".into()], 10).await.unwrap();
    assert_eq!(
        due.iter().map(|due| (due.id, due.firing.origin)).collect::<Vec<_>>(),
        [(known, Origin::Schedule)]
    );
    // A firing has one row, whatever stands in it.
    let claim = site.claim(&fresh(ended)).await;
    assert!(matches!(&claim, Claim::Duplicate(found) if found.state.known().is_none()), "{claim:?}");
    let skipped = site.opened.ledger.skip(&skipping(ended, Reason::Missed)).await.unwrap();
    assert_eq!(skipped, Skipped::AlreadyThere(Word::<State>::Foreign("asleep".into())));
}

#[tokio::test]
async fn words_of_a_newer_program_make_no_row_of_postgresql_unreadable() {
    let site = Site::<Postgres>::open().await;
    let (ended, ids) = three_rows(&site).await;
    site.sql(
        "ALTER TABLE runner_firings DROP CONSTRAINT runner_firings_origin,
            DROP CONSTRAINT runner_firings_state",
    );
    site.sql(&rewrite(ids));
    nothing_is_stopped(&site, &ended, ids).await;
}

#[tokio::test]
async fn words_of_a_newer_program_make_no_row_of_sqlite_unreadable() {
    let site = Site::<Sqlite>::open().await;
    let (ended, ids) = three_rows(&site).await;
    let mut newer = SqliteConnection::connect(&site.address()).await.unwrap();
    sqlx::raw_sql("PRAGMA ignore_check_constraints = ON").execute(&mut newer).await.unwrap();
    sqlx::raw_sql(sqlx::AssertSqlSafe(rewrite(ids))).execute(&mut newer).await.unwrap();
    nothing_is_stopped(&site, &ended, ids).await;
}
