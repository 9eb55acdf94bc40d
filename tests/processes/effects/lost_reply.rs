//! A commit whose answer never came.

use std::time::Duration;

use testbed::rows::state;
use testbed::{Cluster, Deployment, Proxy, wait_until_blocking};

use super::frozen::soon;
use super::table::{counting, effects, end, on};

/// A deployment that reaches the database through a proxy, with one job that takes half a second to its
/// commit; and the database's own address.
fn through_a_proxy(cluster: &Cluster) -> (Deployment, Proxy, String) {
    let (deployment, database) = on(cluster);
    let proxy = Proxy::new(([127, 0, 0, 1], cluster.postgres.port()).into());
    let port = |port: u16| format!(":{port}/");
    let through = database.replace(&port(cluster.postgres.port()), &port(proxy.address().port()));
    let job = format!("[jobs.pay]\n{}\nmax_attempts = 5\n{}", soon(), counting("SELECT pg_sleep(0.5);"));
    (deployment.ledger(through).ttl("3s").jobs(&job), proxy, database)
}

#[test]
fn a_commit_whose_reply_is_lost_has_happened_once_and_the_firing_has_succeeded() {
    let cluster = Cluster::start();
    let (deployment, proxy, database) = through_a_proxy(&cluster);
    let mut replica = deployment.start(1).remove(0);
    replica.wait_for_line(Duration::from_secs(20), |line| line.contains("started"));
    proxy.swallow_reply_once("COMMIT");
    let row = wait_until_blocking(Duration::from_secs(20), || {
        let rows = deployment.history("pay");
        let row = rows.first().ok_or("no row yet")?;
        if row["state"] == "running" { Err(format!("{row}")) } else { Ok(row.clone()) }
    });
    assert_eq!((state(&row).as_str(), &row["attempt"]), ("succeeded", &1.into()));
    let line = replica.wait_for_line(Duration::from_secs(20), |line| line.contains("succeeded"));
    assert!(line.contains("attempt=1"), "{line}");
    assert_eq!(proxy.swallowed(), 1);
    assert_eq!(deployment.history("pay"), [row], "asking for the outcome changed it");
    assert_eq!(effects(&database, "pay").into_values().collect::<Vec<_>>(), [1]);
    end(std::slice::from_mut(&mut replica));
}

#[test]
fn an_outcome_that_stays_unknown_is_asked_for_until_it_is_known() {
    let cluster = Cluster::start();
    let (deployment, proxy, database) = through_a_proxy(&cluster);
    let name = database.rsplit('/').next().unwrap();
    let accept = |yes: bool| cluster.postgres.sql(&format!("ALTER DATABASE {name} ALLOW_CONNECTIONS {yes}"));
    let mut replica = deployment.start(1).remove(0);
    wait_until_blocking(Duration::from_secs(20), || {
        let at_work = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'";
        if cluster.postgres.sql(at_work) == "1" { Ok(()) } else { Err("it is not at work yet".into()) }
    });
    // From now on there are no answers but over connections that stand already.
    proxy.swallow_reply_once("COMMIT");
    accept(false);
    let asking =
        replica.wait_for_line(Duration::from_secs(20), |line| line.contains("commit without an answer"));
    assert!(!asking.contains("succeeded"), "{asking}");
    accept(true);
    let line = replica.wait_for_line(Duration::from_secs(20), |line| line.contains(" succeeded"));
    assert!(line.contains("attempt=1"), "{line}");
    let rows = deployment.history("pay");
    assert_eq!(
        rows.iter().map(|row| (state(row), row["attempt"].as_u64())).collect::<Vec<_>>(),
        [("succeeded".into(), Some(1))]
    );
    assert_eq!(effects(&database, "pay").into_values().collect::<Vec<_>>(), [1]);
    end(std::slice::from_mut(&mut replica));
}
