//! Three replicas, each with its own roads to Redis and PostgreSQL, and what is done to them.

use std::path::Path;
use std::time::{Duration, Instant};

use chrono::{DateTime, Utc};
use testbed::oracle::{History, LockTerms, Sights, Witness};
use testbed::{Deployment, Mode, PrivatePostgres, Proxy, let_pass, past, wait_at_most, wait_until_blocking};

use super::fault::{Deck, Dice, Fault, Faults};
use super::locks::Locks;
use super::report::Evidence;
use super::site::Site;
use super::{now, wall};
use crate::program;

const TTL: Duration = Duration::from_secs(2);
const REPLICAS: usize = 3;
/// The work of a job that is meant to be caught in the middle.
const LONG: Duration = Duration::from_millis(1_200);
/// After so much trouble everything is made whole, and the way back is measured.
const ROUND: Duration = Duration::from_secs(30);

/// How long a fault waits for a run that it is meant for.
const PATIENCE: Duration = Duration::from_secs(2);

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

fn period(job: &str) -> Duration {
    let (_, seconds, ..) = JOBS.into_iter().find(|(known, ..)| *known == job).expect("a job of ours");
    Duration::from_secs(seconds)
}

/// Something to be undone later.
enum Heal {
    Start(usize),
    Wake(usize),
    Roads(usize),
    Redis,
    /// The standby takes over; the next heal is the old primary's.
    Promote,
    Demote,
}

/// All of it.
pub(crate) struct Sites {
    sites: Vec<Site>,
    deployment: Deployment,
    database: String,
    locks: Locks,
    _postgres: PrivatePostgres,
    heals: Vec<(Instant, Heal)>,
    healed: Vec<DateTime<Utc>>,
    faults: Faults,
}

impl Sites {
    pub(crate) fn start() -> Self {
        let (locks, postgres) = (Locks::start(), PrivatePostgres::start());
        let database = postgres.create_database();
        let mut deployment = Deployment::new(program())
            .redis(locks.primary().url())
            .ledger(database.clone())
            .ttl("2s")
            .runner("shutdown_grace = \"1s\"");
        for (name, every, work, keys) in JOBS {
            deployment = deployment.job(name, work, &format!("every = \"{every}s\"\n{keys}"));
        }
        let migrated = deployment.run(&["migrate"]);
        assert!(migrated.status.success(), "{migrated:?}");
        past::watch(&database);
        let address = format!("127.0.0.1:{}", postgres.port()).parse().unwrap();
        let site = || Site::new(Proxy::new(locks.primary().addr()), Proxy::new(address));
        let mut sites: Vec<_> = std::iter::repeat_with(site).take(REPLICAS).collect();
        for site in &mut sites {
            site.start(deployment.replica(), &database);
        }
        sites.iter().for_each(Site::wait_until_ready);
        let (heals, healed, faults) = (Vec::new(), Vec::new(), Faults::default());
        Self { sites, deployment, database, locks, _postgres: postgres, heals, healed, faults }
    }

    /// Inflicts faults for `span`, in rounds, each of which ends with everything whole again. Goes on for
    /// up to twice as long while the run has not met every kind of trouble: it would prove nothing.
    pub(crate) fn suffer(&mut self, span: Duration, dice: &mut Dice) {
        let (begin, round) = (now(), ROUND.min(span / 2));
        let mut deck = Deck::default();
        loop {
            let end = now() + round;
            while now() < end {
                let fault = deck.draw(dice);
                self.inflict(fault, dice);
                let_pass(dice.millis(200, 1_200));
                self.undo_until(now(), dice);
                self.gather();
            }
            self.make_whole(dice);
            let enough = self.sights().lacks().is_empty();
            if now() > begin + if enough { span } else { span * 2 } {
                return;
            }
        }
    }

    fn inflict(&mut self, fault: Fault, dice: &mut Dice) {
        let working: Vec<_> = (0..REPLICAS).filter(|index| self.sites[*index].is_at_work()).collect();
        let Some(&index) = working.get(dice.below(working.len().max(1))) else { return };
        let site = &mut self.sites[index];
        let blocked = if dice.below(2) == 0 { Mode::Refuse } else { Mode::Stall };
        let (span, heal) = match fault {
            Fault::Kill => {
                site.kill();
                (dice.millis(500, 4_000), Some(Heal::Start(index)))
            }
            Fault::Freeze => {
                site.freeze();
                (dice.millis(500, 4_000), Some(Heal::Wake(index)))
            }
            Fault::FreezeInRun => {
                let index = self.owner_of_a_run(&working).unwrap_or(index);
                self.sites[index].freeze();
                (dice.millis(5_500, 8_000), Some(Heal::Wake(index)))
            }
            Fault::Drain => {
                site.drain(Duration::from_secs(20));
                (dice.millis(100, 2_000), Some(Heal::Start(index)))
            }
            Fault::CutRedis => {
                site.cut_redis(blocked);
                (dice.millis(500, 6_000), Some(Heal::Roads(index)))
            }
            Fault::CutPostgres => {
                site.postgres.set(blocked);
                (dice.millis(500, 6_000), Some(Heal::Roads(index)))
            }
            Fault::SilencePostgres => {
                site.postgres.set(Mode::StallReplies);
                (dice.millis(200, 3_000), Some(Heal::Roads(index)))
            }
            Fault::SwallowReply => {
                // Every name of ours stands in some parameter of a claim or in the owner of a row.
                match dice.below(3) {
                    0 => site.lose_a_reply_of_redis("EVALSHA"),
                    1 => site.postgres.swallow_reply_once("schedule"),
                    _ => site.postgres.swallow_reply_once("succeeded"),
                }
                (Duration::ZERO, None)
            }
            Fault::ResetPostgres => {
                site.postgres.cut();
                (Duration::ZERO, None)
            }
            Fault::Flush | Fault::RestartRedis | Fault::FailOver if !self.locks.is_well() => return,
            Fault::Flush => {
                self.locks.primary().flushall();
                (Duration::ZERO, None)
            }
            Fault::RestartRedis => {
                self.sites.iter_mut().for_each(Site::redis_is_cut);
                self.locks.kill();
                (dice.millis(500, 4_000), Some(Heal::Redis))
            }
            Fault::FailOver => {
                self.locks.lag();
                (dice.millis(100, 2_000), Some(Heal::Promote))
            }
        };
        self.faults.count(fault);
        self.heals.extend(heal.map(|heal| (now() + span, heal)));
    }

    /// One that works at this moment, waiting a little for it.
    fn owner_of_a_run(&self, working: &[usize]) -> Option<usize> {
        wait_at_most(PATIENCE, || working.iter().copied().find(|index| self.sites[*index].is_in_a_run()))
    }

    fn undo_until(&mut self, time: Instant, dice: &mut Dice) {
        let due: Vec<_> = self.heals.extract_if(.., |(at, _)| *at <= time).collect();
        for (_, heal) in due {
            self.undo(&heal, dice);
        }
    }

    fn undo(&mut self, heal: &Heal, dice: &mut Dice) {
        match *heal {
            Heal::Start(index) => self.sites[index].start(self.deployment.replica(), &self.database),
            Heal::Wake(index) => self.sites[index].wake(),
            Heal::Roads(index) => self.sites[index].open_roads(),
            Heal::Redis => {
                self.locks.restart();
                self.sites.iter_mut().for_each(Site::redis_is_whole);
            }
            Heal::Promote => {
                self.locks.promote();
                for site in &mut self.sites {
                    site.redis_is_cut();
                    site.redis.set_backend(self.locks.primary().addr());
                    // The others stay with the old primary for a while: two servers, two truths.
                    if dice.below(2) == 0 {
                        site.redis.cut();
                    }
                }
                self.heals.push((now() + dice.millis(200, 1_500), Heal::Demote));
            }
            Heal::Demote => {
                self.locks.demote_the_old();
                for site in &mut self.sites {
                    site.redis.cut();
                    site.redis_is_whole();
                }
            }
        }
    }

    fn gather(&mut self) {
        self.sites.iter_mut().for_each(Site::gather);
    }

    /// Lets everything work again, and waits until each firing that was due by then has its row.
    fn make_whole(&mut self, dice: &mut Dice) {
        while let Some((_, heal)) = self.heals.pop() {
            self.undo(&heal, dice);
        }
        let healed = wall();
        self.healed.push(healed);
        wait_until_blocking(Duration::from_secs(90), || {
            let missing = past::read(&self.database, healed, period).judge().counts.missing;
            if missing == 0 { Ok(()) } else { Err(format!("{missing} firings have no row")) }
        });
    }

    /// Ends it all, when what was due at the last heal has ended.
    pub(crate) fn end(&mut self) {
        let due_by = *self.healed.last().expect("suffer() comes first");
        // What waits in the queue runs in its turn, behind jobs that go on firing.
        wait_until_blocking(Duration::from_secs(180), || {
            let open = past::open_rows(&self.database, due_by);
            if open == 0 { Ok(()) } else { Err(format!("{open} firings have not ended")) }
        });
        for site in &mut self.sites {
            site.drain(Duration::from_secs(30));
        }
    }

    /// Leaves what was said and what was seen in `folder`.
    pub(crate) fn keep(&self, folder: &Path, history: &History) {
        std::fs::create_dir_all(folder).unwrap();
        for (number, site) in self.sites.iter().enumerate() {
            std::fs::write(folder.join(format!("site-{number}.log")), site.log()).unwrap();
        }
        std::fs::write(folder.join("history"), format!("{history:#?}")).unwrap();
    }

    pub(crate) fn faults(&self) -> &Faults {
        &self.faults
    }

    pub(crate) fn evidence(&mut self) -> Evidence {
        let mut all = Evidence::default();
        self.sites.iter_mut().for_each(|site| all += site.account().0);
        all
    }

    /// What the run has met so far.
    pub(crate) fn sights(&mut self) -> Sights {
        let Evidence { unknown, stale, overlaps, .. } = self.evidence();
        let takeovers = past::read(&self.database, wall(), period).judge().counts.takeovers;
        Sights { takeovers, stale, unknown, overlaps }
    }

    /// What happened, up to the last heal.
    pub(crate) fn past(&mut self) -> History {
        let until = *self.healed.last().expect("suffer() comes first");
        let mut history = past::read(&self.database, until, period);
        history.effects = self.deployment.effects().all();
        let known: std::collections::BTreeSet<_> =
            history.rows.iter().map(|row| (row.job.clone(), row.scheduled_at)).collect();
        history.effects.retain(|effect| {
            known.contains(&(effect.job.clone(), effect.scheduled_at)) || effect.scheduled_at <= until
        });
        history.witness = Witness {
            changes: past::changes(&self.database),
            locks: self.locks.events(),
            // Neither cap nor timeout is set: three renewals.
            lock_terms: Some(LockTerms { ttl: TTL, max_renewals: 3 }),
            processes: self.sites.iter_mut().flat_map(|site| site.account().1).collect(),
            heals: self.healed.clone(),
            // Two leases and one sweep, which takes place each second.
            recovery_bound: TTL * 2 + Duration::from_secs(1),
        };
        history
    }
}
