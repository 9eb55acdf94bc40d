//! The jobs of a simulated world: what they do is decided by the seed, and written down as they do it.

use std::sync::Arc;
use std::time::Duration;

use runner::internal::firing::Fence;
use runner::{Job, JobContext, JobError};
use serde::Deserialize;
use testbed::EffectKind;

use super::clock::SimClock;
use super::dice::Dice;
use super::plan::Tick;
use super::servers::EPOCH;
use super::wire::Wire;

/// The jobs of each world, one set for each.
pub(crate) const DECKS: [&[&str]; 6] = [
    &["brisk", "steady"],
    &["once", "plain"],
    &["freely", "strict", "single"],
    &["deaf", "brisk"],
    &["steady", "once", "strict"],
    &["single", "plain"],
];

/// Every job there is: name, period in seconds, jitter in milliseconds, and what else jobs.toml says of it.
pub(crate) const JOBS: [(&str, u64, u64, &str); 8] = [
    ("brisk", 1, 0, "start_deadline = \"6s\"\nmax_crashes = 1\nparams = { temper = \"swift\" }"),
    ("steady", 3, 0, "timeout = \"6s\"\nmax_attempts = 3\nmax_crashes = 1\nparams = { temper = \"moody\" }"),
    ("once", 2, 0, "delivery = \"at_most_once\"\nparams = { temper = \"moody\" }"),
    ("single", 1, 0, "delivery = \"at_most_once\"\nparams = { temper = \"swift\" }"),
    ("freely", 2, 0, "overlap = \"allow\"\nmax_attempts = 2\nparams = { temper = \"moody\" }"),
    ("plain", 2, 500, "guard = \"ledger\"\njitter = \"500ms\"\nparams = { temper = \"moody\" }"),
    ("strict", 2, 0, "on_unavailable = \"skip\"\nparams = { temper = \"swift\" }"),
    ("deaf", 4, 0, "max_crashes = 1\nparams = { temper = \"deaf\" }"),
];

/// How a job behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Temper {
    /// Quick, and nearly always well.
    Swift,
    /// Anything: quick or longer than its lease, well or ill, or with a panic.
    Moody,
    /// Slow, and does not listen when it is told to stop.
    Deaf,
}

/// What jobs.toml says under `params`.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Params {
    temper: Temper,
}

/// Where jobs run, and where what they do is written down.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) seed: u64,
    pub(crate) wire: Arc<Wire>,
    pub(crate) clock: Arc<SimClock>,
    pub(crate) replica: usize,
}

/// One moment of a run.
#[derive(Clone, Debug)]
pub(crate) struct Deed {
    pub(crate) kind: EffectKind,
    pub(crate) job: String,
    /// Milliseconds since 1970.
    pub(crate) scheduled_at: i64,
    pub(crate) attempt: u32,
    pub(crate) fence: i64,
    pub(crate) replica: usize,
    pub(crate) at: Tick,
}

/// One job.
#[derive(Debug)]
pub(crate) struct Errand {
    stage: Stage,
    temper: Temper,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Well,
    Fails,
    GivesUp,
    Panics,
}

impl Errand {
    pub(crate) fn new(stage: Stage, params: Params) -> Self {
        Self { stage, temper: params.temper }
    }

    /// How long a run takes and how it ends.
    fn script(&self, dice: &Dice) -> (Tick, End) {
        if self.stage.clock.now() >= self.stage.wire.plan.heal {
            return (dice.between(10, 200), End::Well);
        }
        match self.temper {
            Temper::Swift => {
                (dice.between(5, 300), if dice.in_thousand(20) { End::Fails } else { End::Well })
            }
            Temper::Moody => {
                let longest = dice.one_of(&[100, 1_000, 2_000, 5_500]);
                let ends = [End::Well, End::Well, End::Well, End::Fails, End::GivesUp, End::Panics];
                (dice.between(5, longest), dice.one_of(&ends))
            }
            Temper::Deaf => (dice.between(200, 6_000), End::Well),
        }
    }
}

impl Job for Errand {
    async fn run(&self, ctx: &JobContext) -> Result<(), JobError> {
        let mut run = Run::begin(&self.stage, ctx);
        let name = ctx.job().bytes().fold(0, |sum, byte| sum * 31 + u64::from(byte));
        let (instant, attempt) = (run.deed.scheduled_at.abs_diff(EPOCH), u64::from(ctx.attempt()));
        let dice = Dice::of(&[self.stage.seed, name, instant, attempt]);
        let (mut left, end) = self.script(&dice);
        while left > 0 {
            let step = left.min(dice.between(20, 200));
            let work = tokio::time::sleep(Duration::from_millis(step));
            tokio::select! {
                biased;
                cause = ctx.cancelled(), if self.temper != Temper::Deaf => {
                    run.ends(EffectKind::Killed);
                    return Err(JobError::retry(format!("stopped: {cause}")));
                }
                () = work => {}
            }
            left -= step;
            if left > 0 {
                run.note(EffectKind::Tick);
            }
        }
        run.ends(if end == End::Well { EffectKind::End } else { EffectKind::Tick });
        match end {
            End::Well => Ok(()),
            End::Fails => Err(JobError::retry("it went wrong")),
            End::GivesUp => Err(JobError::fail("it cannot go right")),
            End::Panics => {
                self.stage.wire.lock().record.tally.panics += 1;
                // Without the hook, which would print it.
                std::panic::resume_unwind(Box::new("it panicked"))
            }
        }
    }
}

/// A run, and its last moment even if it is dropped.
struct Run<'s> {
    stage: &'s Stage,
    deed: Deed,
    ended: bool,
}

impl<'s> Run<'s> {
    fn begin(stage: &'s Stage, ctx: &JobContext) -> Self {
        let Fence(fence) = ctx.fence();
        let deed = Deed {
            kind: EffectKind::Start,
            job: ctx.job().to_owned(),
            scheduled_at: ctx.scheduled_at().timestamp_millis(),
            attempt: ctx.attempt(),
            fence,
            replica: stage.replica,
            at: 0,
        };
        let mut run = Self { stage, deed, ended: false };
        run.note(EffectKind::Start);
        run
    }

    fn note(&mut self, kind: EffectKind) {
        (self.deed.kind, self.deed.at) = (kind, self.stage.clock.now());
        let Deed { job, fence, at, replica, .. } = &self.deed;
        let mut inner = self.stage.wire.lock();
        inner.record.trace.note(*at, job, *replica, || format!("{kind:?} under fence {fence}"));
        let tally = &mut inner.record.tally;
        match kind {
            EffectKind::Start => tally.starts += 1,
            EffectKind::End => tally.ends += 1,
            EffectKind::Killed => tally.runs_cancelled += 1,
            EffectKind::Tick => {}
        }
        inner.record.deeds.push(self.deed.clone());
    }

    fn ends(&mut self, kind: EffectKind) {
        self.note(kind);
        self.ended = true;
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        // A replica that is killed has no time to say so.
        if !self.ended && !self.stage.clock.is_over() {
            self.stage.wire.lock().record.tally.runs_dropped += 1;
            self.note(EffectKind::Tick);
        }
    }
}
