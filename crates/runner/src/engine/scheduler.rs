//! Turns timetables into firings at their exact instants.
//!
//! tokio-cron-scheduler is the heartbeat: one job, every second. On each beat the planner takes every
//! instant in `(cursor, now + LOOK_AHEAD]` of each timetable and parks a sleeper for it. The cursor,
//! not the beat, decides: a missed, late or doubled beat changes nothing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use lockcore::BootInstant;
use tokio::sync::Notify;
use tokio::time::{MissedTickBehavior, interval};
use tokio_cron_scheduler::{Job as Beat, JobScheduler, JobSchedulerError};
use tokio_util::task::TaskTracker;
use tracing::debug;

use crate::engine::Site;
use crate::engine::executor::{Executor, Ticket};
use crate::engine::lifecycle::Drain;
use crate::engine::pulse::Pulse;
use crate::firing::{Firing, Origin};
use crate::registry::BoundJob;
use crate::schedule::{self, Timetable};
use crate::telemetry;

/// How far ahead a beat plans: more than two beats, so that a missed one delays nothing.
const LOOK_AHEAD: TimeDelta = TimeDelta::milliseconds(2_500);
/// Without a beat for this long the planner beats for itself.
const PATIENCE: Duration = Duration::from_secs(3);

/// How often the runtime's timer beats, where it is the heartbeat.
const BEAT: Duration = Duration::from_secs(1);

/// What wakes the planner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heart {
    /// tokio-cron-scheduler, at each second of the host's clock.
    Cron,
    /// The runtime's own timer, each second: for a runtime whose time is not the host's.
    Timer,
}

/// When the planner last looked at the timetables: how others see that it lives.
#[derive(Debug, Default)]
pub(crate) struct LastBeat(Mutex<Option<BootInstant>>);

impl LastBeat {
    /// The planner looks at them now.
    pub(crate) fn beat(&self, now: BootInstant) {
        *self.lock() = Some(now);
    }

    /// How long ago that was; `None` before the first time.
    #[must_use]
    pub(crate) fn age(&self, now: BootInstant) -> Option<Duration> {
        self.lock().map(|beat| now.saturating_since(beat))
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
    /// Every instant in `(cursor, until]`, oldest first; the cursor moves past each exactly once.
    ///
    /// Instants that are older than `now - grace` (a suspended or frozen replica has just woken) are
    /// passed over: deciding about missed firings is the reconciliation's, once for all replicas.
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

/// Fires jobs on time.
#[derive(Debug)]
pub(crate) struct Scheduler {
    executor: Arc<Executor>,
    pulse: Arc<Pulse>,
    groups: Vec<Group>,
    firings: TaskTracker,
    drain: Drain,
    last_beat: Arc<LastBeat>,
    heart: Heart,
}

impl Scheduler {
    /// A scheduler for `jobs` that plans what falls due after `from`.
    #[must_use]
    pub(crate) fn new(
        executor: Arc<Executor>,
        jobs: &[Arc<BoundJob>],
        firings: TaskTracker,
        last_beat: Arc<LastBeat>,
        heart: Heart,
        from: DateTime<Utc>,
    ) -> Self {
        let Site { pulse, drain, .. } = executor.site.clone();
        // In the file's order, so that what falls due together is fired in that order.
        let mut groups: Vec<Group> = Vec::new();
        let mut places: HashMap<Timetable, usize> = HashMap::new();
        for job in jobs.iter().filter(|job| job.spec.enabled) {
            let ttl = TimeDelta::from_std(job.spec.budget.ttl).unwrap_or(TimeDelta::MAX);
            let place = *places.entry(job.spec.timetable.clone()).or_insert(groups.len());
            if place == groups.len() {
                let timetable = job.spec.timetable.clone();
                groups.push(Group { timetable, jobs: Vec::new(), cursor: from, grace: ttl });
            }
            let group = &mut groups[place];
            group.jobs.push(job.clone());
            group.grace = group.grace.max(ttl);
        }
        Self { executor, pulse, groups, firings, drain, last_beat, heart }
    }

    /// Plans and fires until the replica drains.
    ///
    /// # Errors
    /// When the heartbeat cannot be started.
    pub(crate) async fn run(mut self) -> Result<(), JobSchedulerError> {
        let beat = Arc::new(Notify::new());
        let heart = match self.heart {
            Heart::Cron => Some(cron_heart(beat.clone()).await?),
            Heart::Timer => None,
        };
        let mut own = interval(if heart.is_some() { PATIENCE } else { BEAT });
        own.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // An interval's first tick is at once; here it would be a beat that was missed.
        own.reset();
        loop {
            self.plan();
            tokio::select! {
                // A heart that is shut down may beat once more: the end must win.
                biased;
                () = self.drain.closing() => break,
                () = beat.notified() => own.reset(),
                _ = own.tick() => if heart.is_some() {
                    telemetry::heartbeat_missed();
                    debug!("no beat for {PATIENCE:?}; planning anyway");
                }
            }
        }
        match heart {
            Some(mut heart) => heart.shutdown().await,
            None => Ok(()),
        }
    }

    fn plan(&mut self) {
        self.last_beat.beat(self.executor.site.clock.boot_now());
        let now = self.pulse.now();
        for group in &mut self.groups {
            for instant in group.plan(now, now + LOOK_AHEAD) {
                for job in &group.jobs {
                    for shard in 0..job.spec.shards {
                        self.firings.spawn(fire(
                            self.executor.clone(),
                            job.clone(),
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

/// A heart that beats each second.
async fn cron_heart(beat: Arc<Notify>) -> Result<JobScheduler, JobSchedulerError> {
    let heart = JobScheduler::new().await?;
    heart
        .add(Beat::new_async("* * * * * *", move |_, _| {
            let beat = beat.clone();
            Box::pin(async move { beat.notify_one() })
        })?)
        .await?;
    heart.start().await?;
    Ok(heart)
}

/// Sleeps to the firing's exact moment, then walks it through the corridor.
async fn fire(executor: Arc<Executor>, job: Arc<BoundJob>, firing: Firing) {
    let due = firing.scheduled_at + schedule::delay(&firing.job, firing.scheduled_at, job.spec.jitter);
    tokio::select! {
        biased;
        () = executor.site.drain.closing() => return,
        () = executor.site.pulse.sleep_until(due) => {}
    }
    let fate = executor.execute(&job, Ticket::Fresh(firing)).await;
    debug!(job = %job.spec.name, ?fate, "walked");
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_missed_and_a_doubled_beat_change_nothing() {
        let mut steady = group(100, 30);
        let mut shaky = group(100, 30);
        let mut one: Vec<_> = (100..110).flat_map(|now| steady.plan(at(now), at(now) + LOOK_AHEAD)).collect();
        let beats = [100, 100, 101, 104, 104, 109];
        let mut other: Vec<_> =
            beats.into_iter().flat_map(|now| shaky.plan(at(now), at(now) + LOOK_AHEAD)).collect();
        one.sort_unstable();
        other.sort_unstable();
        assert_eq!(one, (101..=111).map(at).collect::<Vec<_>>());
        assert_eq!(one, other);
    }

    #[test]
    fn a_clock_that_is_set_back_repeats_no_instant() {
        let mut group = group(100, 30);
        assert_eq!(group.plan(at(100), at(102)), [at(101), at(102)]);
        assert!(group.plan(at(40), at(42)).is_empty());
        assert_eq!(group.plan(at(101), at(103)), [at(103)]);
    }

    #[test]
    fn under_a_shaky_clock_a_day_of_seconds_is_planned_without_a_hole_and_without_a_repetition() {
        let mut group = group(0, 30);
        let mut planned = Vec::new();
        for beat in 0..86_400 {
            // Up to two seconds off either way, and every now and then a beat that does not come.
            let off = (beat * 7_919) % 4_001 - 2_000;
            if beat % 13 != 0 {
                let now = at(beat) + TimeDelta::milliseconds(off);
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
}
