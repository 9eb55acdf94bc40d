//! Fences that grow whichever server mints them: the arithmetic, at its edges. What happens when real
//! servers fail over is shown by tests/processes/failover/mod.rs.

use std::time::Duration;

use runner::internal::firing::{Fence, Reason};
use runner::internal::ledger::{LedgerOptions, Server, migrate, open};
use testbed::PrivatePostgres;

use crate::fixture::{
    Fixture as _, Postgres, Site, at_once, fresh, later, options, requeue, run, succeeded, take,
};

const SECOND: Duration = Duration::from_secs(1);
/// What the timeline is multiplied by.
const TIMELINE: i64 = 1_000_000_000_000;
/// JavaScript and others count in doubles: above this they lose the last digits.
const EXACT_IN_DOUBLES: i64 = 1 << 53;

/// The fences of two claims of one firing: the one that inserts its row, and the one that takes it again.
async fn mint(site: &Site<Postgres>) -> [i64; 2] {
    let rows: u32 = site.sql("SELECT count(*) FROM runner_firings").parse().unwrap();
    let firing = later(&site.firing(SECOND * 100).await, SECOND * rows);
    let first = site.win(&fresh(&firing)).await;
    site.settle(run(first), requeue(Reason::Retry)).await;
    let second = site.win(&take(&firing, first.id)).await;
    site.settle(run(second), succeeded()).await;
    [first.fence, second.fence].map(|Fence(fence)| fence)
}

/// Makes the server say that it is this one.
pub(crate) fn pretend(site: &Site<Postgres>, system: i64, timeline: i64) {
    for (name, value) in [("system", system), ("timeline", timeline)] {
        site.sql(&format!(
            "CREATE OR REPLACE FUNCTION runner_{name}() RETURNS bigint LANGUAGE sql VOLATILE
             AS 'SELECT {value}::bigint'"
        ));
    }
}

pub(crate) fn count(site: &Site<Postgres>) -> i64 {
    site.sql("SELECT last_value FROM runner_fence").parse().unwrap()
}

async fn adopt(site: &Site<Postgres>) -> Option<Server> {
    site.opened.housekeeping.adopt().await.unwrap()
}

#[tokio::test]
async fn a_fence_is_the_timeline_then_the_count_and_fits_a_double() {
    let site = Site::<Postgres>::open().await;
    let server = site.opened.reader.now().await.unwrap().server.unwrap();
    assert_eq!(server.timeline, 1);
    assert_eq!(site.sql("SELECT system_identifier FROM pg_control_system()"), server.system.to_string());
    assert_eq!(mint(&site).await, [TIMELINE + 1, TIMELINE + 2]);
    // The most that doubles can hold: this many promotions, and claims without end in sight.
    pretend(&site, server.system, 9_006);
    let [_, last] = mint(&site).await;
    assert!(last < EXACT_IN_DOUBLES, "{last}");
    assert_eq!(last, 9_006 * TIMELINE + 4);
}

#[tokio::test]
async fn a_count_that_outgrows_its_digits_carries() {
    let site = Site::<Postgres>::open().await;
    site.sql(&format!("SELECT setval('runner_fence', {})", TIMELINE - 2));
    let fences = [mint(&site).await, mint(&site).await].concat();
    let first = TIMELINE + TIMELINE - 1;
    assert_eq!(fences, [first, first + 1, first + 2, first + 3]);
    // And further than a promotion reaches in one step.
    site.sql(&format!("SELECT setval('runner_fence', {})", 5 * TIMELINE));
    let [before, _] = mint(&site).await;
    let server = site.opened.reader.now().await.unwrap().server.unwrap();
    pretend(&site, server.system, 2);
    assert!(mint(&site).await[0] > before);
}

#[tokio::test]
async fn a_promoted_server_whose_count_went_back_mints_above_every_fence_of_the_former() {
    let site = Site::<Postgres>::open().await;
    let mut last = 0;
    for timeline in [1, 2, 3, 10] {
        pretend(&site, 7, timeline);
        // What a standby does that knows nothing of the last claims.
        site.sql("SELECT setval('runner_fence', 1, false)");
        for fence in mint(&site).await {
            assert!(fence > last, "{fence} after {last}");
            last = fence;
        }
    }
}

#[tokio::test]
async fn fences_of_a_ledger_from_before_are_below_all_new_ones() {
    const LAST: i64 = (1 << 40) - 1;
    let site = Site::<Postgres>::open().await;
    site.run().await;
    site.sql(&format!(
        "DROP TABLE runner_server; DROP FUNCTION runner_timeline, runner_system;
         DELETE FROM runner_migrations WHERE version = 2;
         SELECT setval('runner_fence', {LAST}); UPDATE runner_firings SET fence = {LAST};
         ALTER SEQUENCE runner_fence MAXVALUE {LAST};"
    ));
    assert_eq!(migrate(&options(site.url())).await.unwrap(), ["0002_server"]);
    site.sql("UPDATE runner_firings SET state = 'succeeded', finished_at = now()");
    assert_eq!(mint(&site).await, [TIMELINE + LAST + 1, TIMELINE + LAST + 2]);
}

#[tokio::test]
async fn a_cluster_that_the_ledger_was_moved_to_mints_above_the_former_timelines() {
    let site = Site::<Postgres>::open().await;
    pretend(&site, 7, 5);
    adopt(&site).await.expect("it was another one");
    let [_, old] = mint(&site).await;
    // A new cluster begins with its first timeline, and a dump may be older than the last claims.
    pretend(&site, 8, 1);
    site.sql("SELECT setval('runner_fence', 1)");
    assert_eq!(adopt(&site).await, Some(Server { system: 7, timeline: 5 }));
    assert_eq!(adopt(&site).await, None, "it is known now");
    let [first, second] = mint(&site).await;
    assert!(first > old && second > first, "{old} {first} {second}");
    // Promotions there go on from here.
    pretend(&site, 8, 2);
    site.sql("SELECT setval('runner_fence', last_value - 1) FROM runner_fence");
    assert!(mint(&site).await[0] > second);
}

#[tokio::test]
async fn only_another_cluster_moves_the_count_and_never_back() {
    let site = Site::<Postgres>::open().await;
    let server = site.opened.reader.now().await.unwrap().server.unwrap();
    mint(&site).await;
    let before = count(&site);
    assert_eq!(adopt(&site).await, None);
    pretend(&site, server.system, 2);
    assert_eq!(adopt(&site).await, Some(server));
    assert_eq!(count(&site), before);
    // One that is far ahead by itself.
    pretend(&site, 8, 9);
    assert_eq!(adopt(&site).await, Some(Server { timeline: 2, ..server }));
    let moved = count(&site);
    assert!((before..before + 3).contains(&moved), "{before} {moved}");
    // One on the very same timeline: its claims may lack the last of the former.
    pretend(&site, 9, 9);
    assert_eq!(adopt(&site).await, Some(Server { system: 8, timeline: 9 }));
    assert!((moved + TIMELINE..moved + TIMELINE + 3).contains(&count(&site)), "{moved} {}", count(&site));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_replicas_that_meet_another_cluster_one_adopts_it() {
    let site = Site::<Postgres>::open().await;
    for round in 1..6 {
        let before = count(&site);
        pretend(&site, 100 + round, 1);
        let noted = at_once((0..8).map(|_| {
            let housekeeping = site.opened.housekeeping.clone();
            async move { housekeeping.adopt().await.unwrap() }
        }))
        .await;
        assert_eq!(noted.iter().flatten().count(), 1, "{noted:?}");
        let raised = count(&site) - before;
        assert!((TIMELINE..TIMELINE + 9).contains(&raised), "{raised}");
    }
}

#[tokio::test]
async fn a_role_that_may_only_write_rows_claims_and_adopts() {
    let site = Site::<Postgres>::open().await;
    let role = format!("worker_{}", std::process::id());
    site.sql(&format!(
        "CREATE ROLE {role} LOGIN;
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {role};
         GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA public TO {role};"
    ));
    let url = site.url().replace("postgres@", &format!("{role}@"));
    let opened = open(LedgerOptions { migrate: false, ..options(url) }).await.unwrap();
    let firing = site.firing(SECOND).await;
    let claim = opened.ledger.claim(&fresh(&firing)).await.unwrap();
    assert!(
        matches!(claim, runner::internal::ledger::Claim::Won(won) if won.fence.0 > TIMELINE),
        "{claim:?}"
    );
    pretend(&site, 8, 1);
    assert!(opened.housekeeping.adopt().await.unwrap().is_some());
}

#[tokio::test]
async fn a_server_that_does_not_show_its_log_counts_as_one_that_is_never_replaced() {
    let url = Postgres::new().url();
    let role = format!("tenant_{}", std::process::id());
    PrivatePostgres::sql_at(
        &url,
        &format!(
            "CREATE ROLE {role} LOGIN; GRANT CREATE ON SCHEMA public TO {role};
             REVOKE EXECUTE ON FUNCTION pg_current_wal_lsn() FROM PUBLIC;"
        ),
    );
    let site = Site::<Postgres>::at(url.replace("postgres@", &format!("{role}@"))).await;
    let server = site.opened.reader.now().await.unwrap().server;
    assert_eq!(server, Some(Server { system: 0, timeline: 1 }));
    assert_eq!(mint(&site).await, [TIMELINE + 1, TIMELINE + 2]);
    assert_eq!(adopt(&site).await, None);
}
