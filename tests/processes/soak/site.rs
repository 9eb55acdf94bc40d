//! One replica, its own roads to Redis and PostgreSQL, and what all processes in its place have said.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use testbed::oracle::ReplicaProcess;
use testbed::{Lines, Mode, Proxy, Replica, ReplicaBuilder};

use super::report::Evidence;
use super::wall;

/// After a road is whole again a client may still be about to learn it.
const RECONNECT: TimeDelta = TimeDelta::seconds(1);

pub(crate) struct Site {
    replica: Option<Replica>,
    pub(crate) redis: Proxy,
    pub(crate) postgres: Proxy,
    frozen_since: Option<DateTime<Utc>>,
    /// Since when messages between it and Redis may be lost or late.
    cut_since: Option<DateTime<Utc>>,
    /// Since when one reply of Redis is about to be lost, and how many had been before.
    trapped_since: Option<(DateTime<Utc>, usize)>,
    /// The last one is the one that runs.
    tellers: Vec<Teller>,
    evidence: Evidence,
    /// Everything they have said, for a look at a run that failed.
    log: Vec<String>,
}

/// A process and what it says. Its last words may be read after its successor has started.
struct Teller {
    process: ReplicaProcess,
    lines: Lines,
    read: usize,
}

impl Site {
    pub(crate) fn new(redis: Proxy, postgres: Proxy) -> Self {
        Self {
            replica: None,
            redis,
            postgres,
            frozen_since: None,
            cut_since: None,
            trapped_since: None,
            tellers: Vec::new(),
            evidence: Evidence::default(),
            log: Vec::new(),
        }
    }

    /// Everything that was said in this place.
    pub(crate) fn log(&self) -> String {
        self.log.join("\n")
    }

    /// Starts a replica that knows no other roads than these.
    pub(crate) fn start(&mut self, replica: ReplicaBuilder, database: &str) {
        let lock = format!("redis://{}/0", self.redis.address());
        let (_, name) = database.rsplit_once('/').unwrap();
        let ledger = format!("postgres://postgres@{}/{name}", self.postgres.address());
        let replica = replica.env("RUNNER__LOCK__URL", lock).env("RUNNER__LEDGER__URL", ledger).spawn();
        let lines = replica.lines().clone();
        self.tellers.push(Teller { process: ReplicaProcess::default(), lines, read: 0 });
        self.replica = Some(replica);
    }

    pub(crate) fn wait_until_ready(&self) {
        let ready = |line: &str| line.contains("ready instance=");
        self.replica.as_ref().unwrap().wait_for_line(Duration::from_secs(60), ready);
    }

    pub(crate) fn is_at_work(&mut self) -> bool {
        self.frozen_since.is_none() && self.replica.as_mut().is_some_and(Replica::is_running)
    }

    /// Whether a job of it works.
    pub(crate) fn is_in_a_run(&self) -> bool {
        self.replica.as_ref().is_some_and(|replica| !replica.descendants().is_empty())
    }

    pub(crate) fn kill(&mut self) {
        self.replica().kill9();
        self.tellers.last_mut().unwrap().process.killed_at = Some(wall());
    }

    pub(crate) fn freeze(&mut self) {
        self.frozen_since = Some(wall());
        self.replica().stop();
    }

    pub(crate) fn wake(&mut self) {
        self.replica().cont();
        if let (Some(since), Some(teller)) = (self.frozen_since.take(), self.tellers.last_mut()) {
            teller.process.frozen.push((since, wall() + RECONNECT));
        }
    }

    /// Ends it in order, and keeps its last words.
    pub(crate) fn drain(&mut self, limit: Duration) {
        if self.replica.as_mut().is_some_and(Replica::is_running) {
            self.replica().terminate();
            self.replica().wait_exit(limit);
        }
    }

    /// What it says to Redis, or hears from there, may be lost or late from now on.
    pub(crate) fn redis_is_cut(&mut self) {
        self.cut_since.get_or_insert_with(wall);
    }

    pub(crate) fn cut_redis(&mut self, mode: Mode) {
        self.redis_is_cut();
        self.redis.set(mode);
    }

    pub(crate) fn lose_a_reply_of_redis(&mut self, needle: &str) {
        self.trapped_since.get_or_insert((wall(), self.redis.swallowed()));
        self.redis.swallow_reply_once(needle);
    }

    /// Both roads are open.
    pub(crate) fn open_roads(&mut self) {
        self.redis.set(Mode::Forward);
        self.postgres.set(Mode::Forward);
        self.redis_is_whole();
    }

    /// Redis answers again.
    pub(crate) fn redis_is_whole(&mut self) {
        if let Some(since) = self.cut_since.take() {
            self.note_cut(since);
        }
    }

    /// Reads what it has said since the last look.
    pub(crate) fn gather(&mut self) {
        if let Some((since, before)) = self.trapped_since
            && self.redis.swallowed() > before
        {
            self.trapped_since = None;
            self.note_cut(since);
        }
        for Teller { process, lines, read } in &mut self.tellers {
            let fresh = lines.since(*read);
            *read += fresh.len();
            for line in fresh {
                self.log.push(line.clone());
                self.evidence.see(&line);
                if let Some((_, name)) = line.split_once("ready instance=") {
                    let name = name.split_whitespace().next().unwrap_or_default();
                    process.instance = name.trim_matches('"').to_owned();
                }
                if line.contains("WARN") || line.contains("ERROR") {
                    process.alarms.push(line);
                }
            }
        }
    }

    /// What has been seen of it; every fault still open counts to its end.
    pub(crate) fn account(&mut self) -> (Evidence, Vec<ReplicaProcess>) {
        self.gather();
        if let Some((since, _)) = self.trapped_since {
            self.note_cut(since);
        }
        self.redis_is_whole();
        let swallowed = self.redis.swallowed() + self.postgres.swallowed();
        (
            Evidence { swallowed, ..self.evidence },
            self.tellers.iter().map(|teller| teller.process.clone()).collect(),
        )
    }

    fn note_cut(&mut self, since: DateTime<Utc>) {
        let until = wall() + RECONNECT;
        // A process that started meanwhile was cut for the rest of it, and the one before as well.
        for teller in self.tellers.iter_mut().rev().take(2) {
            teller.process.cut.push((since, until));
        }
    }

    fn replica(&mut self) -> &mut Replica {
        self.replica.as_mut().expect("a replica that was started")
    }
}
