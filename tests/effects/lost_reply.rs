//! A commit whose answer never came.

use std::time::Duration;

use testbed::{Proxy, wait_until_blocking};

use crate::cluster::{Cluster, state};
use crate::frozen::soon;
use crate::table::{counting, effects, end, on};

#[test]
fn a_commit_whose_reply_is_lost_has_happened_once_and_the_firing_has_succeeded() {
    let cluster = Cluster::start();
    let (deployment, database) = on(&cluster);
    let proxy = Proxy::new(([127, 0, 0, 1], cluster.postgres.port()).into());
    let through = database.replace(&cluster.postgres.port().to_string(), &proxy.address().port().to_string());
    let deployment = deployment.ledger(through).ttl("3s").jobs(&format!(
        "[jobs.pay]\n{}\nmax_attempts = 5\n{}",
        soon(),
        counting("SELECT pg_sleep(0.5);")
    ));
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
