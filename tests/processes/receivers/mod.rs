//! The receiver that docs/receivers.md shows: the very same text, compiled and run.

#[expect(unreachable_pub, reason = "the page shows it as it stands in a crate of its own")]
mod payout;

use sqlx::PgPool;
use testbed::PrivatePostgres;

pub(crate) use payout::payout;

const PAGE: &str = include_str!("../../../docs/receivers.md");

/// The part of the page that stands between ```` ```language ```` and its end.
fn shown(language: &str) -> &'static str {
    let (_, after) = PAGE.split_once(&format!("```{language}\n")).expect("an example");
    after.split_once("```").expect("its end").0
}

/// A database with the tables that the page shows.
pub(crate) async fn database(postgres: &PrivatePostgres) -> PgPool {
    let db = PgPool::connect(&postgres.create_database()).await.unwrap();
    for statement in shown("sql").split_inclusive(";\n") {
        sqlx::query(statement).execute(&db).await.unwrap();
    }
    db
}

async fn paid(db: &PgPool) -> Vec<i64> {
    sqlx::query_scalar("SELECT amount FROM payouts ORDER BY amount").fetch_all(db).await.unwrap()
}

#[test]
fn the_page_shows_the_receiver_that_is_tested_here() {
    assert_eq!(shown("rust"), include_str!("payout.rs"));
}

#[tokio::test]
async fn a_request_that_is_repeated_pays_once_and_is_told_so_again() {
    let postgres = PrivatePostgres::start();
    let db = database(&postgres).await;
    for (key, fence, amount) in [("a", 1, 10), ("a", 1, 10), ("a", 2, 10), ("b", 3, 20)] {
        assert_eq!(payout(&db, key, "pay", fence, amount).await.unwrap(), 200, "{key} {fence}");
    }
    assert_eq!(paid(&db).await, [10, 20]);
}

#[tokio::test]
async fn a_run_that_was_overtaken_is_refused_whatever_its_key() {
    let postgres = PrivatePostgres::start();
    let db = database(&postgres).await;
    assert_eq!(payout(&db, "a", "pay", 7, 10).await.unwrap(), 200);
    for key in ["a", "older"] {
        assert_eq!(payout(&db, key, "pay", 6, 30).await.unwrap(), 409);
    }
    assert_eq!(payout(&db, "other", "another job", 6, 20).await.unwrap(), 200);
    assert_eq!(paid(&db).await, [10, 20]);
}

#[tokio::test]
async fn requests_at_the_same_time_pay_once() {
    let postgres = PrivatePostgres::start();
    let db = database(&postgres).await;
    for round in 0..20 {
        let key = format!("firing {round}");
        let requests = (1..=8).map(|attempt| payout(&db, &key, "pay", round * 10 + attempt, round));
        for status in futures_util::future::join_all(requests).await {
            assert!(matches!(status, Ok(200 | 409)), "{status:?}");
        }
    }
    assert_eq!(paid(&db).await, (0..20).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_payout_that_fails_leaves_neither_its_key_nor_its_fence() {
    let postgres = PrivatePostgres::start();
    let db = database(&postgres).await;
    sqlx::query("ALTER TABLE payouts ADD CHECK (amount > 0)").execute(&db).await.unwrap();
    assert!(payout(&db, "a", "pay", 9, -1).await.is_err());
    assert_eq!(payout(&db, "a", "pay", 8, 10).await.unwrap(), 200);
    assert_eq!(paid(&db).await, [10]);
}
