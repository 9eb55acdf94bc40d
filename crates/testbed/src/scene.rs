//! Servers, a deployment on them, and the network paths (wires) from each replica to them.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::rows::state;
use crate::{
    Bait, Cluster, Deployment, PrivatePostgres, Proxy, Replica, ReplicaBuilder, wait_until_blocking,
};

/// A second.
pub const SECOND: Duration = Duration::from_secs(1);
/// The run time of a command that ends almost at once.
pub const QUICK: Duration = Duration::from_millis(50);
/// Longer than a start takes on a busy machine.
pub const START: Duration = Duration::from_secs(30);

/// The servers, and the database of the deployment.
#[derive(Debug)]
pub struct Scene {
    /// The servers.
    pub cluster: Cluster,
    ledger: String,
}

/// A network path to both servers, with a proxy for each. One replica or several use it.
#[derive(Debug)]
pub struct Wire {
    /// The proxy in front of the lock's server.
    pub redis: Proxy,
    /// The proxy in front of the ledger's server.
    pub postgres: Proxy,
    ledger: String,
}

impl Scene {
    /// Starts both servers and creates the database.
    #[expect(clippy::new_without_default, reason = "it starts servers")]
    pub fn new() -> Self {
        let cluster = Cluster::start();
        let ledger = cluster.postgres.create_database();
        Self { cluster, ledger }
    }

    /// A deployment whose own commands (`history`) reach both servers directly, with a ttl of 3 s.
    pub fn deployment(&self, program: &Path) -> Deployment {
        Deployment::new(program).redis(self.cluster.redis.url()).ledger(&self.ledger)
    }

    /// A new wire to both servers.
    pub fn wire(&self) -> Wire {
        let postgres = ([127, 0, 0, 1], self.cluster.postgres.port()).into();
        Wire {
            redis: Proxy::new(self.cluster.redis.addr()),
            postgres: Proxy::new(postgres),
            ledger: self.ledger.clone(),
        }
    }

    /// `N` new wires to both servers.
    pub fn wires<const N: usize>(&self) -> [Wire; N] {
        std::array::from_fn(|_| self.wire())
    }

    /// The deployment's database.
    pub fn database(&self) -> &str {
        &self.ledger
    }

    /// The result of a query in the deployment's database.
    pub fn ask(&self, sql: &str) -> String {
        PrivatePostgres::sql_at(&self.ledger, sql)
    }

    /// Matches every execution of this script on the lock's server: clients name a script by its hash.
    pub fn script(&self, text: &str) -> Bait {
        let hash = self.cluster.redis.call(&["SCRIPT", "LOAD", text]);
        Bait::Bytes(hash.unwrap().into_bytes())
    }
}

impl Wire {
    /// A replica that reaches both servers only over this wire.
    pub fn replica(&self, deployment: &Deployment) -> ReplicaBuilder {
        let port = |url: &str| {
            let (before, database) = url.rsplit_once('/').unwrap();
            let (before, _) = before.rsplit_once(':').unwrap();
            format!("{before}:{}/{database}", self.postgres.address().port())
        };
        deployment
            .replica()
            .env("RUNNER__LOCK__URL", format!("redis://{}/0", self.redis.address()))
            .env("RUNNER__LEDGER__URL", port(&self.ledger))
    }

    /// `count` replicas on this wire, started at once.
    pub fn start(&self, deployment: &Deployment, count: usize) -> Vec<Replica> {
        (0..count).map(|_| self.replica(deployment).spawn()).collect()
    }
}

/// Starts one replica on each of these wires. Returns when all are ready.
pub fn start_on(wires: &[Wire], deployment: &Deployment) -> Vec<Replica> {
    let replicas: Vec<_> = wires.iter().map(|wire| wire.replica(deployment).spawn()).collect();
    for replica in &replicas {
        instance(replica);
    }
    replicas
}

/// The name with which a replica locks and claims. Waits until the replica is ready.
pub fn instance(replica: &Replica) -> String {
    let line = replica.wait_for_line(START, |line| line.contains("ready") && line.contains("instance="));
    let (_, rest) = line.split_once("instance=").unwrap();
    rest.split_whitespace().next().unwrap().trim_matches('"').to_owned()
}

/// Waits until the trap on `proxy` has caught `count` messages in all.
#[track_caller]
pub fn wait_for_catch(proxy: &Proxy, count: usize) {
    wait_until_blocking(Duration::from_secs(20), || match proxy.swallowed() {
        caught if caught >= count => Ok(()),
        caught => Err(format!("the trap has caught {caught} of {count}")),
    });
}

/// Ends the replicas with SIGTERM and waits for them.
#[track_caller]
pub fn end(replicas: &mut [Replica]) {
    for replica in &mut *replicas {
        replica.terminate();
    }
    for replica in replicas {
        let status = replica.wait_exit(Duration::from_secs(15));
        assert!(status.success(), "SIGTERM ended a replica with {status:?}\n{}", replica.lines().tail());
    }
}

/// The replica that runs a command now: the one that has a child process.
#[track_caller]
pub fn owner(replicas: &[Replica]) -> usize {
    wait_until_blocking(Duration::from_secs(5), || {
        let works = replicas.iter().position(|replica| !replica.descendants().is_empty());
        works.ok_or_else(|| "no replica has a child".to_owned())
    })
}

/// Matches every execution of the ledger's statement of this name.
pub fn statement(name: &str) -> Bait {
    Bait::Statement(format!("-- {name}\n"))
}

/// The time of the host, which the effects carry too.
pub fn host_now() -> DateTime<Utc> {
    Utc::now()
}

/// The key of a job that fires once, a few seconds from now.
pub fn soon() -> String {
    let at = host_now() + TimeDelta::seconds(6);
    format!("at = {}", at.to_rfc3339_opts(chrono::SecondsFormat::Secs, true))
}

/// Waits until the only row of `job` is in this state.
#[track_caller]
pub fn wait_for_row(deployment: &Deployment, job: &str, wanted: &str) -> Value {
    wait_until_blocking(Duration::from_secs(20), || match deployment.history(job).as_slice() {
        [row] if state(row) == wanted => Ok(row.clone()),
        rows => Err(format!("{rows:?}")),
    })
}
