//! A primary, its standby, and the one address under which replicas know whichever of them takes rows.

use std::net::SocketAddr;
use std::time::Duration;

use testbed::client::get;
use testbed::scene::{START, instance};
use testbed::{Deployment, Effect, EffectKind, PrivatePostgres, PrivateRedis, Proxy, Replica};

use crate::program;

/// What the timeline is multiplied by.
pub(crate) const TIMELINE: i64 = 1_000_000_000_000;

/// What every replica says, once, when it meets a promoted standby.
pub(crate) const ALARM: &str = "a standby has been promoted under the ledger";

/// What may become of a firing that an outage has met; the last two, when the outage was a long one: too
/// old to run, or found late and still behind others when the replicas left.
pub(crate) const LEGAL: [&str; 6] = [
    "succeeded",
    "skipped(overlap)",
    "queued(owner_lost)",
    "queued(interrupted)",
    "skipped(missed)",
    "queued(catch_up)",
];

pub(crate) struct Stage {
    pub(crate) primary: PrivatePostgres,
    /// What the standby learns of the primary's log.
    pub(crate) stream: Proxy,
    pub(crate) standby: PrivatePostgres,
    /// Where replicas, and the deployment's own commands, find the ledger.
    pub(crate) door: Proxy,
    redis: PrivateRedis,
    database: String,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let primary = PrivatePostgres::start();
        let url = primary.create_database();
        let (_, database) = url.rsplit_once('/').unwrap();
        let stream = Proxy::new(primary.address());
        let standby = primary.standby(stream.address());
        let door = Proxy::new(primary.address());
        Self { primary, stream, standby, door, redis: PrivateRedis::start(), database: database.into() }
    }

    /// A deployment whose replicas serve their numbers, with a ttl of 3 s.
    pub(crate) fn deployment(&self) -> Deployment {
        Deployment::new(program())
            .redis(self.redis.url())
            .ledger(format!("postgres://postgres@{}/{}", self.door.address(), self.database))
            .jobs("[admin]\nlisten = \"127.0.0.1:0\"")
    }

    /// The ledger's database on one of the servers.
    pub(crate) fn on(&self, server: &PrivatePostgres) -> String {
        server.url_of(&self.database)
    }

    /// The address leads to `server` from now on; connections that led elsewhere are gone.
    pub(crate) fn lead_to(&self, server: &PrivatePostgres) {
        self.door.set_backend(server.address());
        self.door.cut();
    }

    pub(crate) fn name(&self) -> &str {
        &self.database
    }
}

/// Replicas that are ready.
pub(crate) fn start(deployment: &Deployment, count: usize) -> Vec<Replica> {
    let replicas = deployment.start(count);
    replicas.iter().map(instance).for_each(drop);
    replicas
}

/// How many failovers a replica has counted.
pub(crate) fn failovers(replica: &Replica) -> u64 {
    let line = replica.wait_for_line(START, |line| line.contains("serving /healthz"));
    let address: SocketAddr = line.rsplit_once("address=").unwrap().1.trim().parse().unwrap();
    let page = get(address, "/metrics").body;
    let count = page.lines().find_map(|line| line.strip_prefix("runner_ledger_failovers_total "));
    count.unwrap_or_else(|| panic!("{page}")).parse().unwrap()
}

/// Each replica says `what` once, and has counted it as the only failover.
#[track_caller]
pub(crate) fn assert_told_once(replicas: &[Replica], what: &str) {
    for replica in replicas {
        replica.wait_for_line(Duration::from_secs(10), |line| line.contains(what));
    }
    for replica in replicas {
        let told = replica.lines().since(0).into_iter().filter(|line| line.contains(what)).count();
        assert_eq!((told, failovers(replica)), (1, 1), "{}", replica.lines().tail());
    }
}

/// The starts of runs, in the order in which they were made.
pub(crate) fn starts(deployment: &Deployment) -> Vec<Effect> {
    let all = deployment.effects().all().into_iter();
    all.filter(|effect| effect.kind == EffectKind::Start).collect()
}

/// Every fence of the runs after the first `before` is above every one of those, and of this timeline.
#[track_caller]
pub(crate) fn assert_fences_grow(starts: &[Effect], before: usize, timeline: i64) {
    let (old, new) = starts.split_at(before);
    let highest = old.iter().map(|start| start.fence).max().expect("runs before");
    let lowest = new.iter().map(|start| start.fence).min().expect("runs after");
    assert!(lowest > highest, "{lowest} after {highest}");
    assert_eq!(lowest / TIMELINE, timeline, "{lowest}");
}
