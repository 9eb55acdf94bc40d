//! Who restarts and who routes is told the truth.

use std::net::SocketAddr;
use std::time::Duration;

use testbed::client::{Answer, get};
use testbed::{Cluster, wait_until_blocking};

use super::{ADMIN, START, address};
use crate::program;

/// Longer than the ledger's silence takes to show on a busy machine; well below a minute.
const SOON: Duration = Duration::from_secs(15);

#[track_caller]
fn wait_for(address: SocketAddr, status: u16, word: &str) -> Answer {
    wait_until_blocking(SOON, || {
        assert_eq!(get(address, "/healthz").status, 200);
        let answer = get(address, "/readyz");
        if answer.status == status && answer.body.contains(word) {
            Ok(answer)
        } else {
            Err(format!("{answer:?}"))
        }
    })
}

#[test]
fn readiness_goes_with_postgresql_and_comes_back_with_it_while_health_stays() {
    let cluster = Cluster::start();
    let deployment = cluster.deployment(program()).jobs(ADMIN).job("tick", Duration::ZERO, "every = \"1s\"");
    let replicas = deployment.start(1);
    let address = address(&replicas[0]);
    wait_for(address, 200, "ready");
    for _ in 0..2 {
        cluster.postgres.stop();
        let answer = wait_for(address, 503, "the ledger does not answer");
        assert_eq!(answer.body, "the ledger does not answer\n");
        cluster.postgres.start_again();
        wait_for(address, 200, "ready");
    }
    // Frozen, not gone: connections stand and nothing is answered.
    cluster.postgres.pause();
    wait_for(address, 503, "the ledger does not answer");
    cluster.postgres.resume();
    wait_for(address, 200, "ready");
    // The lock's server is no reason to send a replica away.
    cluster.redis.kill();
    wait_for(address, 200, "ready");
}

#[test]
fn a_replica_that_waits_for_its_ledger_is_alive_and_not_ready() {
    let cluster = Cluster::start();
    let deployment = cluster.deployment(program()).jobs(ADMIN).job("tick", Duration::ZERO, "every = \"1s\"");
    cluster.postgres.stop();
    let mut replicas = deployment.start(1);
    let address = address(&replicas[0]);
    let answer = wait_for(address, 503, "the ledger does not answer");
    assert!(answer.body.contains("the scheduler has not begun"), "{answer:?}");
    cluster.postgres.start_again();
    wait_for(address, 200, "ready");
    replicas[0].terminate();
    assert!(replicas[0].wait_exit(START).success());
}

#[test]
fn a_replica_that_drains_says_so_until_its_last_run_has_ended() {
    let deployment = super::alone().job("long", Duration::from_secs(3), "every = \"1s\"");
    let mut replicas = deployment.start(1);
    let replica = &mut replicas[0];
    let address = address(replica);
    deployment.effects().wait_for_starts("long", 1, START);
    replica.terminate();
    wait_for(address, 503, "draining");
    assert!(replica.wait_exit(START).success());
    let ended =
        deployment.effects().all().iter().filter(|effect| effect.kind == testbed::EffectKind::End).count();
    assert!(ended > 0, "the long run was cut short");
}
