//! Turns timetables into firings at their exact instants.
//!
//! tokio-cron-scheduler is the ticker: it has one job, which ticks every second. On each tick the planner takes
//! every instant in `(cursor, now + LOOK_AHEAD]` of each timetable and starts a task that sleeps until it. The
//! cursor decides what is planned, so a missed, late or doubled tick changes nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use lockcore::BootInstant;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};
use tokio_cron_scheduler::{Job as EverySecond, JobScheduler, JobSchedulerError};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::debug;

use super::Site;
use super::executor::{Executor, Ticket};
use super::job_set::{JobSet, SharedJobs};
use crate::firing::{Firing, Origin};
use crate::registry::BoundJob;
use crate::schedule::{self, Timetable};
use crate::telemetry;

/// How far ahead a tick plans. It is more than two ticks, so that one missed tick delays nothing.
const LOOK_AHEAD: TimeDelta = TimeDelta::milliseconds(2_500);
/// A cursor that is so far beyond the plan shows that the clock was set back.
const SET_BACK: TimeDelta = TimeDelta::seconds(1);
/// After so long without a tick the planner plans without one.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often the runtime's timer ticks if it is the ticker.
const TICK: Duration = Duration::from_secs(1);

/// What wakes the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticker {
    /// tokio-cron-scheduler, at each second of the host's clock.
    Cron,
    /// The runtime's own timer, each second. For a runtime whose time is not the host's, as in a simulation.
    Timer,
}

/// When the planner last looked at the timetables. Health checks read it.
#[derive(Debug, Default)]
pub(crate) struct LastTick(Mutex<Option<BootInstant>>);

impl LastTick {
    /// Notes that the planner looks at the timetables now.
    pub(crate) fn tick(&self, now: BootInstant) {
        *self.lock() = Some(now);
    }

    /// How long ago that was; `None` before the first time.
    #[must_use]
    pub(crate) fn age(&self, now: BootInstant) -> Option<Duration> {
        self.lock().map(|tick| now.saturating_since(tick))
    }

    fn lock(&self) -> MutexGuard<'_, Option<BootInstant>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Jobs that share a timetable, and how far it has been planned.
#[derive(Debug)]
struct Group {
    timetable: Timetable,
    jobs: Vec<Arc<BoundJob>>,
    cursor: DateTime<Utc>,
    grace: TimeDelta,
}

impl Group {
    /// Every instant in `(cursor, until]`, oldest first. The cursor moves past each instant exactly once.
    ///
    /// Instants older than `now - grace` are left out. They are found when a suspended or frozen replica wakes up.
    /// The reconciliation decides about missed firings, once for all replicas.
    fn plan(&mut self, now: DateTime<Utc>, until: DateTime<Utc>) -> Vec<DateTime<Utc>> {
        let oldest = now - self.grace;
        self.cursor = self.cursor.max(oldest);
        let mut instants = Vec::new();
        while let Some(instant) = self.timetable.next(self.cursor).filter(|instant| *instant <= until) {
            self.cursor = instant;
            instants.push(instant);
        }
        instants
    }
}

/// All timetables of a set of jobs, each with the jobs that use it.
#[derive(Debug, Default)]
struct Plan(Vec<Group>);

impl Plan {
    /// Begins anew at `now` if the clock was set back, and says whether it did. The plan would otherwise wait until the
    /// clock is where it was. An instant that is planned twice runs once: it has its row.
    fn begin_again_if_set_back(&mut self, now: DateTime<Utc>) -> bool {
        let is_set_back = self.0.iter().any(|group| group.cursor > now + LOOK_AHEAD + SET_BACK);
        if is_set_back {
            self.0.iter_mut().for_each(|group| group.cursor = group.cursor.min(now));
        }
        is_set_back
    }

    /// The plan of `jobs`. A timetable that `self` already has keeps its cursor. A new one begins after `from`.
    fn follow(&self, jobs: &JobSet, from: DateTime<Utc>) -> Self {
        let planned: HashMap<&Timetable, DateTime<Utc>> =
            self.0.iter().map(|group| (&group.timetable, group.cursor)).collect();
        // In the file's order, so that what falls due together is fired in that order.
        let mut groups: Vec<Group> = Vec::new();
        let mut places: HashMap<Timetable, usize> = HashMap::new();
        for job in jobs.iter().filter(|job| job.spec.enabled) {
            let ttl = TimeDelta::from_std(job.spec.budget.ttl).unwrap_or(TimeDelta::MAX);
            let timetable = &job.spec.timetable;
            let place = *places.entry(timetable.clone()).or_insert(groups.len());
            if place == groups.len() {
                let cursor = planned.get(timetable).copied().unwrap_or(from);
                groups.push(Group { timetable: timetable.clone(), jobs: Vec::new(), cursor, grace: ttl });
            }
            let group = &mut groups[place];
            group.jobs.push(job.clone());
            group.grace = group.grace.max(ttl);
        }
        Self(groups)
    }
}

/// Fires jobs on time.
#[derive(Debug)]
pub(crate) struct Scheduler {
    executor: Arc<Executor>,
    site: Site,
    jobs: SharedJobs,
    plan: Plan,
    firings: TaskTracker,
    /// Ends the sleep of firings when the plan begins anew. A clock that jumps to and fro would else leave ever more of
    /// them asleep.
    plan_replaced: CancellationToken,
    last_tick: Arc<LastTick>,
    ticker: Ticker,
}

impl Scheduler {
    /// A scheduler for `jobs` that plans what falls due after `from`.
    #[must_use]
    pub(crate) fn new(
        executor: Arc<Executor>,
        mut jobs: SharedJobs,
        firings: TaskTracker,
        last_tick: Arc<LastTick>,
        ticker: Ticker,
        from: DateTime<Utc>,
    ) -> Self {
        let plan = Plan::default().follow(&jobs.borrow_and_update(), from);
        let plan_replaced = CancellationToken::new();
        Self { site: executor.site.clone(), executor, jobs, plan, firings, plan_replaced, last_tick, ticker }
    }

    /// Plans and fires until the replica drains.
    ///
    /// # Errors
    /// When the ticker cannot be started.
    pub(crate) async fn run(mut self) -> Result<(), JobSchedulerError> {
        let tick = Arc::new(Notify::new());
        let cron = match self.ticker {
            Ticker::Cron => Some(cron_ticker(tick.clone()).await?),
            Ticker::Timer => None,
        };
        let mut own = interval(if cron.is_some() { PATIENCE } else { TICK });
        own.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first tick of an interval comes at once. Here it would count as a missed tick.
        own.reset();
        loop {
            self.plan_ahead();
            tokio::select! {
                // A ticker that is shut down may tick once more. The drain must win.
                biased;
                () = self.site.drain.closing() => break,
                Ok(()) = self.jobs.changed() => {
                    let jobs = self.jobs.borrow_and_update().clone();
                    self.plan = self.plan.follow(&jobs, self.site.pulse.now());
                }
                () = tick.notified() => own.reset(),
                _ = own.tick() => if cron.is_some() {
                    telemetry::tick_missed();
                    debug!("no tick for {PATIENCE:?}; planning anyway");
                }
            }
        }
        match cron {
            Some(mut cron) => cron.shutdown().await,
            None => Ok(()),
        }
    }

    fn plan_ahead(&mut self) {
        self.last_tick.tick(self.site.clock.boot_now());
        let now = self.site.pulse.now();
        if self.plan.begin_again_if_set_back(now) {
            std::mem::take(&mut self.plan_replaced).cancel();
        }
        for group in &mut self.plan.0 {
            for instant in group.plan(now, now + LOOK_AHEAD) {
                for job in &group.jobs {
                    for shard in 0..job.spec.shards {
                        self.firings.spawn(fire(
                            self.executor.clone(),
                            job.clone(),
                            self.plan_replaced.clone(),
                            Firing {
                                job: job.spec.name.clone(),
                                scheduled_at: instant,
                                shard,
                                trigger_key: String::new(),
                                origin: Origin::Schedule,
                            },
                        ));
                    }
                }
            }
            if let Some(next) = group.timetable.next(now) {
                for job in &group.jobs {
                    telemetry::next_firing(&job.spec.name, next);
                }
            }
        }
    }
}

/// A ticker that ticks each second.
async fn cron_ticker(tick: Arc<Notify>) -> Result<JobScheduler, JobSchedulerError> {
    let cron = JobScheduler::new().await?;
    cron.add(EverySecond::new_async("* * * * * *", move |_, _| {
        let tick = tick.clone();
        Box::pin(async move { tick.notify_one() })
    })?)
    .await?;
    cron.start().await?;
    Ok(cron)
}

/// Sleeps until the firing's exact moment, then takes it through the corridor.
async fn fire(executor: Arc<Executor>, job: Arc<BoundJob>, plan_replaced: CancellationToken, firing: Firing) {
    let due = firing.scheduled_at + schedule::delay(&firing.job, firing.scheduled_at, job.spec.jitter);
    tokio::select! {
        biased;
        () = executor.site.drain.closing() => return,
        () = executor.site.pulse.sleep_until(due) => {}
        () = plan_replaced.cancelled() => return,
    }
    let fate = executor.execute(&job, Ticket::Fresh(firing)).await;
    debug!(job = %job.spec.name, ?fate, "walked");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, Environment};
    use crate::job::{Job, JobContext, JobError};

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    fn group(cursor: i64, grace: i64) -> Group {
        Group {
            timetable: Timetable::every(Duration::from_secs(1)).unwrap(),
            jobs: Vec::new(),
            cursor: at(cursor),
            grace: TimeDelta::seconds(grace),
        }
    }

    #[test]
    fn a_missed_and_a_doubled_tick_change_nothing() {
        let mut steady = group(100, 30);
        let mut shaky = group(100, 30);
        let mut one: Vec<_> = (100..110).flat_map(|now| steady.plan(at(now), at(now) + LOOK_AHEAD)).collect();
        let ticks = [100, 100, 101, 104, 104, 109];
        let mut other: Vec<_> =
            ticks.into_iter().flat_map(|now| shaky.plan(at(now), at(now) + LOOK_AHEAD)).collect();
        one.sort_unstable();
        other.sort_unstable();
        assert_eq!(one, (101..=111).map(at).collect::<Vec<_>>());
        assert_eq!(one, other);
    }

    #[test]
    fn a_clock_that_goes_back_by_less_than_a_tick_repeats_no_instant() {
        let mut group = group(100, 30);
        assert_eq!(group.plan(at(100), at(102)), [at(101), at(102)]);
        assert!(group.plan(at(99), at(101)).is_empty());
        assert_eq!(group.plan(at(101), at(103)), [at(103)]);
    }

    #[test]
    fn a_clock_that_was_hours_ahead_is_planned_anew_as_soon_as_it_is_right() {
        let mut plan = Plan(vec![group(100, 30), Group { cursor: at(90), ..group(100, 30) }]);
        let mut planned = |now: i64| {
            let replaced = plan.begin_again_if_set_back(at(now));
            (replaced, plan.0[0].plan(at(now), at(now + 2)))
        };
        assert_eq!(planned(100), (false, vec![at(101), at(102)]));
        let (replaced, ahead) = planned(30_000);
        assert_eq!((replaced, ahead.last()), (false, Some(&at(30_002))));
        assert_eq!(planned(109), (true, vec![at(110), at(111)]));
        assert_eq!(planned(110), (false, vec![at(112)]));
        assert_eq!(plan.0[1].cursor, at(90), "what is not ahead stays where it is");
    }

    #[test]
    fn under_a_shaky_clock_a_day_of_seconds_is_planned_without_hole_or_repetition() {
        let mut group = group(0, 30);
        let mut planned = Vec::new();
        for tick in 0..86_400 {
            // Up to two seconds off either way, and every now and then a tick that does not come.
            let off = (tick * 7_919) % 4_001 - 2_000;
            if tick % 13 != 0 {
                let now = at(tick) + TimeDelta::milliseconds(off);
                planned.extend(group.plan(now, now + LOOK_AHEAD));
            }
        }
        planned.truncate(86_400);
        assert_eq!(planned, (1..=86_400).map(at).collect::<Vec<_>>());
    }

    #[test]
    fn a_replica_that_wakes_late_leaves_old_instants_to_the_reconciliation() {
        let mut group = group(100, 3);
        assert_eq!(group.plan(at(1_000), at(1_001)), [at(998), at(999), at(1_000), at(1_001)]);
    }

    /// Jobs by name and period, in seconds.
    fn jobs(declared: &[(&str, u64)]) -> JobSet {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("jobs.toml");
        let text: String = declared
            .iter()
            .map(|(name, every)| {
                format!("[jobs.{name}]\nkind = \"k\"\nparams = {{}}\nevery = \"{every}s\"\n")
            })
            .collect();
        std::fs::write(&path, text).unwrap();
        let kinds: &[&str] = &["k"];
        let config = Config::load(&path, &Environment::default(), &kinds, &|_| Ok(())).unwrap();
        let bound = |spec: &Arc<crate::config::JobSpec>| {
            Arc::new(BoundJob { spec: spec.clone(), work: Arc::new(Nothing), stock: true })
        };
        JobSet::new(config.jobs.iter().map(bound).collect(), Duration::from_secs(30))
    }

    struct Nothing;

    impl Job for Nothing {
        async fn run(&self, _: &JobContext) -> Result<(), JobError> {
            Ok(())
        }
    }

    #[test]
    fn another_set_of_jobs_begins_now_and_what_stays_goes_on_where_it_is() {
        let mut plan = Plan::default().follow(&jobs(&[("a", 2), ("b", 3)]), at(100));
        assert_eq!(plan.0[0].plan(at(110), at(112)), [102, 104, 106, 108, 110, 112].map(at));
        let mut plan = plan.follow(&jobs(&[("a", 2), ("c", 5), ("d", 2)]), at(110));
        assert_eq!(plan.0.iter().map(|group| group.jobs.len()).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(plan.0[0].plan(at(112), at(114)), [at(114)]);
        assert!(plan.0[1].plan(at(112), at(114)).is_empty());
        assert_eq!(plan.0[1].plan(at(114), at(116)), [at(115)]);
    }
}
