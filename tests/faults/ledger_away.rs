//! PostgreSQL away, and back.

use std::time::Duration;

use testbed::wait_until_blocking;

use crate::cluster::{Cluster, assert_no_gap, assert_nothing_doubled, let_pass, states, wait_for_starts};

#[test]
fn postgresql_down_for_five_seconds_lets_nothing_run_without_a_row_and_work_resumes_at_once() {
    let cluster = Cluster::start();
    let deployment = cluster.deployment().ttl("3s").job("tick", Duration::from_millis(50), "every = \"1s\"");
    let replicas = deployment.start(3);
    let effects = deployment.effects();
    wait_for_starts(effects, "tick", 2, Duration::from_secs(30));
    cluster.postgres.stop();
    // A run that was claimed before the stop may still be starting its command.
    let_pass(Duration::from_secs(1));
    let before = effects.instants("tick");
    let_pass(Duration::from_secs(4));
    assert_eq!(effects.instants("tick"), before, "something ran while no row could be written");
    cluster.postgres.start_again();
    wait_until_blocking(Duration::from_secs(3), || {
        let now = effects.instants("tick").len();
        if now > before.len() { Ok(()) } else { Err("nothing has fired since PostgreSQL is back".into()) }
    });
    wait_for_starts(effects, "tick", before.len() + 8, Duration::from_secs(30));
    for mut replica in replicas {
        replica.terminate();
        assert!(replica.wait_exit(Duration::from_secs(30)).success());
    }
    assert_nothing_doubled(effects, "tick");
    let rows = deployment.history("tick");
    assert_no_gap(&rows, Duration::from_secs(1));
    for instant in effects.instants("tick") {
        let text = instant.to_rfc3339_opts(chrono::SecondsFormat::Secs, true);
        assert!(rows.iter().any(|row| row["scheduled_at"] == text.as_str()), "{text} ran without a row");
    }
    let counted = states(&rows);
    assert!(counted.get("succeeded").is_some_and(|count| *count >= 8), "{counted:?}");
}
