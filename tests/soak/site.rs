//! Three replicas, each with its own roads to Redis and PostgreSQL, and what is done to them.

use std::path::Path;
use std::time::{Duration, Instant};

use testbed::oracle::History;
use testbed::{Deployment, Mode, PrivatePostgres, PrivateRedis, Proxy, Replica, wait_until_blocking};

use crate::fault::{Dice, Fault, Faults};
use crate::past;
use crate::report::Evidence;

const TTL: Duration = Duration::from_secs(2);
const REPLICAS: usize = 3;
/// The work of a job that is meant to be caught in the middle.
const LONG: Duration = Duration::from_millis(1_200);

/// The jobs: name, period in seconds, work, other keys.
pub(crate) const JOBS: [(&str, u64, Duration, &str); 9] = [
    ("quick-a", 1, Duration::from_millis(10), ""),
    ("quick-b", 1, Duration::from_millis(10), ""),
    ("quick-c", 1, Duration::from_millis(10), ""),
    ("quick-d", 1, Duration::from_millis(10), ""),
    ("row-only", 1, Duration::from_millis(10), "guard = \"ledger\""),
    ("strict", 1, Duration::from_millis(10), "on_unavailable = \"skip\""),
    ("work", 1, Duration::from_millis(300), ""),
    ("once", 1, Duration::from_millis(100), "delivery = \"at_most_once\""),
    ("long", 2, LONG, "max_crashes = 100"),
];

/// One replica and its roads.
struct Site {
    replica: Option<Replica>,
    redis: Proxy,
    postgres: Proxy,
    frozen: bool,
    evidence: Evidence,
    read: usize,
}

/// Something to be undone later.
enum Heal {
    Start(usize),
    Wake(usize),
    Roads(usize),
    Redis,
}

/// All of it.
pub(crate) struct Sites {
    sites: Vec<Site>,
    deployment: Deployment,
    database: String,
    redis: PrivateRedis,
    _postgres: PrivatePostgres,
    redis_is_up: bool,
    healed_at: Option<chrono::DateTime<chrono::Utc>>,
    past_evidence: Evidence,
}

impl Sites {
    pub(crate) fn start() -> Self {
        let (redis, postgres) = (PrivateRedis::start(), PrivatePostgres::start());
        let database = postgres.create_database();
        let mut deployment = Deployment::new(Path::new(env!("CARGO_BIN_EXE_runner")))
            .redis(redis.url())
            .ledger(database.clone())
            .ttl("2s")
            .runner("shutdown_grace = \"1s\"");
        for (name, every, work, keys) in JOBS {
            deployment = deployment.job(name, work, &format!("every = \"{every}s\"\n{keys}"));
        }
        let address = format!("127.0.0.1:{}", postgres.port()).parse().unwrap();
        let sites = (0..REPLICAS).map(|_| Site {
            replica: None,
            redis: Proxy::new(redis.addr()),
            postgres: Proxy::new(address),
            frozen: false,
            evidence: Evidence::default(),
            read: 0,
        });
        let mut sites = Self {
            sites: sites.collect(),
            deployment,
            database,
            redis,
            _postgres: postgres,
            redis_is_up: true,
            healed_at: None,
            past_evidence: Evidence::default(),
        };
        for index in 0..REPLICAS {
            sites.start_replica(index);
        }
        for site in &sites.sites {
            let ready = |line: &str| line.contains("ready instance=");
            site.replica.as_ref().unwrap().wait_for_line(Duration::from_secs(60), ready);
        }
        sites
    }

    /// Inflicts faults for `span`.
    pub(crate) fn suffer(&mut self, span: Duration, dice: &mut Dice) -> Faults {
        let mut faults = Faults::default();
        let mut heals: Vec<(Instant, Heal)> = Vec::new();
        let end = now() + span;
        while now() < end {
            self.inflict(Fault::roll(dice), dice, &mut heals, &mut faults);
            std::thread::sleep(dice.millis(200, 1_200));
            let due: Vec<_> = heals.extract_if(.., |(at, _)| *at <= now()).collect();
            for (_, heal) in due {
                self.undo(&heal);
            }
            self.gather();
        }
        for (_, heal) in heals {
            self.undo(&heal);
        }
        faults
    }

    fn inflict(
        &mut self,
        fault: Fault,
        dice: &mut Dice,
        heals: &mut Vec<(Instant, Heal)>,
        faults: &mut Faults,
    ) {
        let index = dice.below(REPLICAS);
        let site = &mut self.sites[index];
        let later = |span: Duration| now() + span;
        let alive = !site.frozen && site.replica.as_mut().is_some_and(Replica::is_running);
        let Some(replica) = site.replica.as_mut().filter(|_| alive) else { return };
        match fault {
            Fault::Kill => {
                replica.kill9();
                heals.push((later(dice.millis(500, 4_000)), Heal::Start(index)));
            }
            Fault::Freeze => {
                replica.stop();
                site.frozen = true;
                heals.push((later(dice.millis(500, 7_000)), Heal::Wake(index)));
            }
            Fault::Drain => {
                replica.terminate();
                replica.wait_exit(Duration::from_secs(20));
                heals.push((later(dice.millis(100, 2_000)), Heal::Start(index)));
            }
            Fault::CutRedis => {
                site.redis.set(if dice.below(2) == 0 { Mode::Refuse } else { Mode::Stall });
                heals.push((later(dice.millis(500, 6_000)), Heal::Roads(index)));
            }
            Fault::CutPostgres => {
                site.postgres.set(if dice.below(2) == 0 { Mode::Refuse } else { Mode::Stall });
                heals.push((later(dice.millis(500, 6_000)), Heal::Roads(index)));
            }
            Fault::SilencePostgres => {
                site.postgres.set(Mode::StallReplies);
                heals.push((later(dice.millis(200, 3_000)), Heal::Roads(index)));
            }
            Fault::SwallowReply => {
                // Every name of ours stands in some parameter of a claim or in the owner of a row.
                let (road, needle) = match dice.below(3) {
                    0 => (&site.redis, "EVALSHA"),
                    1 => (&site.postgres, "schedule"),
                    _ => (&site.postgres, "succeeded"),
                };
                road.swallow_reply_once(needle);
            }
            Fault::ResetPostgres => site.postgres.cut(),
            Fault::Flush if self.redis_is_up => self.redis.flushall(),
            Fault::RestartRedis if self.redis_is_up => {
                self.redis.kill();
                self.redis_is_up = false;
                heals.push((later(dice.millis(500, 4_000)), Heal::Redis));
            }
            Fault::Flush | Fault::RestartRedis => return,
        }
        faults.count(fault);
    }

    fn undo(&mut self, heal: &Heal) {
        match heal {
            Heal::Start(index) => self.start_replica(*index),
            Heal::Wake(index) => {
                let site = &mut self.sites[*index];
                if let Some(replica) = &mut site.replica {
                    replica.cont();
                }
                site.frozen = false;
            }
            Heal::Roads(index) => {
                self.sites[*index].redis.set(Mode::Forward);
                self.sites[*index].postgres.set(Mode::Forward);
            }
            Heal::Redis => {
                self.redis.restart();
                self.redis_is_up = true;
            }
        }
    }

    fn start_replica(&mut self, index: usize) {
        self.gather();
        let site = &mut self.sites[index];
        self.past_evidence += std::mem::take(&mut site.evidence);
        let lock = format!("redis://{}/0", site.redis.address());
        let (_, name) = self.database.rsplit_once('/').unwrap();
        let ledger = format!("postgres://postgres@{}/{name}", site.postgres.address());
        let replica =
            self.deployment.replica().env("RUNNER__LOCK__URL", lock).env("RUNNER__LEDGER__URL", ledger);
        site.replica = Some(replica.spawn());
        site.read = 0;
    }

    /// Reads what the replicas have logged since the last look.
    fn gather(&mut self) {
        for site in &mut self.sites {
            if let Some(replica) = &site.replica {
                let mark = replica.lines().mark();
                for line in replica.lines().since(site.read) {
                    site.evidence.see(&line);
                }
                site.read = mark;
            }
        }
    }

    /// Lets everything work again, and says how long it took until each firing that was due by then had
    /// its row.
    pub(crate) fn heal(&mut self) -> Duration {
        let healed = now();
        let due_by = wall();
        let recovered = wait_until_blocking(Duration::from_secs(90), || {
            let missing = past::read(&self.database, due_by).judge().counts.missing;
            if missing == 0 { Ok(now() - healed) } else { Err(format!("{missing} firings have no row")) }
        });
        // What waits in the queue runs in its turn, behind jobs that go on firing.
        wait_until_blocking(Duration::from_secs(180), || {
            let open = past::open_rows(&self.database, due_by);
            if open == 0 { Ok(()) } else { Err(format!("{open} firings have not ended")) }
        });
        self.healed_at = Some(due_by);
        for site in &mut self.sites {
            if let Some(mut replica) = site.replica.take() {
                replica.terminate();
                replica.wait_exit(Duration::from_secs(30));
            }
        }
        recovered
    }

    /// Two leases, one sweep, and what a busy machine needs.
    pub(crate) fn recovery_bound(&self) -> Duration {
        TTL * 2 + Duration::from_secs(1) + Duration::from_secs(3)
    }

    pub(crate) fn evidence(&mut self) -> Evidence {
        self.gather();
        let mut all = std::mem::take(&mut self.past_evidence);
        for site in &mut self.sites {
            all += std::mem::take(&mut site.evidence);
            all.swallowed += site.redis.swallowed() + site.postgres.swallowed();
        }
        all
    }

    /// What happened, up to the heal.
    pub(crate) fn past(&self) -> History {
        let mut history = past::read(&self.database, self.healed_at.expect("heal() comes first"));
        history.effects = self.deployment.effects().all();
        let known: std::collections::BTreeSet<_> =
            history.rows.iter().map(|row| (row.job.clone(), row.scheduled_at)).collect();
        history.effects.retain(|effect| {
            known.contains(&(effect.job.clone(), effect.scheduled_at))
                || effect.scheduled_at <= self.healed_at.unwrap()
        });
        history
    }
}

fn now() -> Instant {
    #[expect(clippy::disallowed_methods, reason = "the test's own clock")]
    Instant::now()
}

fn wall() -> chrono::DateTime<chrono::Utc> {
    #[expect(clippy::disallowed_methods, reason = "the test's own clock")]
    chrono::Utc::now()
}
