//! An owner frozen in the middle of its transaction.

use std::time::{Duration, Instant};

use testbed::rows::state;
use testbed::{Cluster, PrivatePostgres, wait_until_blocking};

use super::table::{counting, end, on};

const TTL: Duration = Duration::from_secs(4);
const SESSIONS: &str = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'runner effect %'";

/// When a job shall fire once.
pub(crate) fn soon() -> String {
    #[expect(clippy::disallowed_methods, reason = "the test's own clock")]
    let at = chrono::Utc::now() + chrono::TimeDelta::seconds(4);
    format!("at = {}", at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
}

#[test]
fn a_frozen_owner_is_thrown_out_within_its_lease_and_the_next_attempt_commits() {
    let cluster = Cluster::start();
    let (deployment, database) = on(&cluster);
    // The first attempt is at work when it is frozen; the second one is not held up.
    let work = "SELECT pg_sleep(CASE :attempt WHEN 1 THEN 1 ELSE 0 END);";
    let deployment =
        deployment.ttl("4s").jobs(&format!("[jobs.pay]\n{}\ntimeout = \"20s\"\n{}", soon(), counting(work)));
    let mut owner = deployment.start(1).remove(0);
    let count = |query: &str| PrivatePostgres::sql_at(&database, query);
    wait_until_blocking(Duration::from_secs(20), || match count(SESSIONS).as_str() {
        "1" => Ok(()),
        other => Err(format!("{other} sessions in an effect")),
    });
    owner.stop();
    #[expect(clippy::disallowed_methods, reason = "the test's own clock")]
    let frozen = Instant::now();
    let mut others = deployment.start(2);
    wait_until_blocking(Duration::from_secs(20), || match count(SESSIONS).as_str() {
        "0" => Ok(()),
        other => Err(format!("{other} sessions in an effect")),
    });
    let took = frozen.elapsed();
    assert!(took <= TTL, "it took {took:?}");
    let row = wait_until_blocking(Duration::from_secs(20), || {
        let rows = deployment.history("pay");
        let row = rows.first().ok_or("no row yet")?;
        if state(row) == "succeeded" { Ok(row.clone()) } else { Err(format!("{row}")) }
    });
    assert_eq!(row["attempt"], 2);
    owner.cont();
    owner.wait_for_line(Duration::from_secs(20), |line| line.contains("its result is void"));
    assert_eq!(deployment.history("pay"), [row], "the woken owner changed the row");
    assert_eq!(count("SELECT string_agg(attempt::text, ',') FROM effects"), "2");
    end(&mut others);
    end(std::slice::from_mut(&mut owner));
}
