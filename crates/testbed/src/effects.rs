//! What jobs really did, counted outside the product: shell commands append lines to a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::wait_until_blocking;

/// Appends one line for each moment of a run. `$1` is the file, `$2` the pauses between ticks.
///
/// One `printf` is one `write` to a file that is opened for appending, so lines of many processes never mix. The
/// lines use the host's real clock, never the faked clock of a replica.
const SCRIPT: &str = r#"
unset LD_PRELOAD
note() {
    # A SIGTERM to the group ends the program that tells the time; the line must be written all the same.
    at=$(date +%s%N) || at=$(date +%s%N)
    printf '%s\n' "$1 $RUNNER_JOB $RUNNER_SCHEDULED_AT $RUNNER_SHARD $RUNNER_ATTEMPT $RUNNER_FENCE $at $RUNNER_IDEMPOTENCY_KEY" >> "$file"
}
file=$1
trap 'note killed; exit 143' TERM
note start
for pause in $2; do
    sleep "$pause"
    note tick
done
sleep "$3"
note end
"#;
/// The time between two lines of a run. A killed run was alive at its last line, so its end is known to this
/// precision.
const TICK: Duration = Duration::from_millis(250);

/// An append-only file of effects.
#[derive(Clone, Debug)]
pub struct Effects {
    path: PathBuf,
}

/// A moment of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EffectKind {
    /// The run began.
    Start,
    /// The run was still working.
    Tick,
    /// The run got SIGTERM and stopped.
    Killed,
    /// The run finished.
    End,
}

/// One line of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Which moment.
    pub kind: EffectKind,
    /// The job.
    pub job: String,
    /// The nominal instant, as the run knows it.
    pub scheduled_at: DateTime<Utc>,
    /// The shard, as the run knows it.
    pub shard: u32,
    /// The attempt, as the run knows it.
    pub attempt: u32,
    /// The fence, as the run knows it.
    pub fence: i64,
    /// When it happened, by the host's clock (never the faked one).
    pub at: DateTime<Utc>,
    /// The idempotency key, as the run knows it: the same for all attempts of one firing.
    pub key: String,
}

/// The identity of a firing as its runs know it: job, nominal instant, shard, idempotency key.
pub type FiringKey = (String, DateTime<Utc>, u32, String);

/// One run, from its first line to its last.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Span {
    scheduled_at: DateTime<Utc>,
    fence: i64,
    from: DateTime<Utc>,
    until: DateTime<Utc>,
}

impl Effects {
    /// An empty file in `dir`.
    ///
    /// # Panics
    /// When it cannot be created.
    #[must_use]
    pub fn new(dir: &Path) -> Self {
        let path = dir.join("effects");
        std::fs::File::create(&path).expect("a file for the effects");
        Self { path }
    }

    /// The `argv` of a command job that works for `work` and leaves its lines here.
    #[must_use]
    pub fn argv(&self, work: Duration) -> Vec<String> {
        let ticks = (work.as_millis().saturating_sub(1) / TICK.as_millis()) as u32;
        let pauses = vec![TICK.as_secs_f64().to_string(); ticks as usize].join(" ");
        let rest = (work - TICK * ticks).as_secs_f64().to_string();
        let file = self.path.to_str().expect("temporary directories have plain names").to_owned();
        vec!["/bin/sh".into(), "-c".into(), SCRIPT.into(), "effect".into(), file, pauses, rest]
    }

    /// [`Effects::argv`] as the `params` of a job in jobs.toml.
    #[must_use]
    pub fn params(&self, work: Duration) -> String {
        let argv: Vec<String> =
            self.argv(work).iter().map(|arg| serde_json::Value::from(arg.as_str()).to_string()).collect();
        format!("params = {{ argv = [{}] }}", argv.join(", "))
    }

    /// Everything that happened so far, in the order of the file.
    ///
    /// # Panics
    /// When a line cannot be parsed: if lines could mix, no count would be right.
    #[must_use]
    pub fn all(&self) -> Vec<Effect> {
        let text = std::fs::read_to_string(&self.path).expect("the effects can be read");
        text.lines().map(|line| parse(line).unwrap_or_else(|| panic!("not an effect: {line:?}"))).collect()
    }

    /// How often each firing was started.
    #[must_use]
    pub fn effects_per_firing(&self) -> BTreeMap<FiringKey, usize> {
        let mut counted = BTreeMap::new();
        for effect in self.all().into_iter().filter(|effect| effect.kind == EffectKind::Start) {
            let Effect { job, scheduled_at, shard, key, .. } = effect;
            *counted.entry((job, scheduled_at, shard, key)).or_insert(0) += 1;
        }
        counted
    }

    /// The nominal instants of `job` that were started.
    #[must_use]
    pub fn instants(&self, job: &str) -> BTreeSet<DateTime<Utc>> {
        let mine = |effect: &Effect| effect.kind == EffectKind::Start && effect.job == job;
        self.all().into_iter().filter(mine).map(|effect| effect.scheduled_at).collect()
    }

    /// Waits until `count` firings of `job` have been started.
    ///
    /// # Panics
    /// When fewer have been started at the deadline.
    #[track_caller]
    pub fn wait_for_starts(&self, job: &str, count: usize, deadline: Duration) {
        wait_until_blocking(deadline, || match self.instants(job).len() {
            seen if seen >= count => Ok(()),
            seen => Err(format!("{seen} of {count} firings of {job} have started")),
        });
    }

    /// Asserts that no firing of `job` was started twice.
    ///
    /// # Panics
    /// When one was started twice.
    #[track_caller]
    pub fn assert_nothing_doubled(&self, job: &str) {
        let firings = self.effects_per_firing().into_iter();
        let doubled: Vec<_> = firings.filter(|((name, ..), count)| name == job && *count > 1).collect();
        assert!(doubled.is_empty(), "started more than once: {doubled:#?}");
    }

    /// Pairs of runs of `job` that worked at the same time in the same shard, as text for a failure
    /// message.
    ///
    /// A killed run counts until its last line.
    #[must_use]
    pub fn overlaps(&self, job: &str) -> Vec<String> {
        overlaps(&self.all(), job)
    }

    /// The missing instants: those of `job` between its first and its last start that were never started, if one
    /// is due every `period`.
    #[must_use]
    pub fn gaps(&self, job: &str, period: Duration) -> Vec<DateTime<Utc>> {
        gaps(&self.instants(job), period)
    }
}

fn parse(line: &str) -> Option<Effect> {
    let mut words = line.splitn(8, ' ');
    let kind = match words.next()? {
        "start" => EffectKind::Start,
        "tick" => EffectKind::Tick,
        "killed" => EffectKind::Killed,
        "end" => EffectKind::End,
        _ => return None,
    };
    Some(Effect {
        kind,
        job: words.next()?.to_owned(),
        scheduled_at: DateTime::parse_from_rfc3339(words.next()?).ok()?.to_utc(),
        shard: words.next()?.parse().ok()?,
        attempt: words.next()?.parse().ok()?,
        fence: words.next()?.parse().ok()?,
        at: DateTime::from_timestamp_nanos(words.next()?.parse().ok()?),
        key: words.next()?.to_owned(),
    })
}

fn overlaps(effects: &[Effect], job: &str) -> Vec<String> {
    let mut spans: BTreeMap<(u32, String, i64), Span> = BTreeMap::new();
    for effect in effects.iter().filter(|effect| effect.job == job) {
        let Effect { scheduled_at, shard, fence, at, ref key, .. } = *effect;
        let span = spans.entry((shard, key.clone(), fence)).or_insert(Span {
            scheduled_at,
            fence,
            from: at,
            until: at,
        });
        span.until = span.until.max(at);
    }
    let mut found = Vec::new();
    for ((shard, _, _), span) in &spans {
        for ((other_shard, _, _), other) in &spans {
            let apart = span.until <= other.from || other.until <= span.from;
            if shard == other_shard && span.fence < other.fence && !apart {
                found.push(format!("{job} overlapped itself: {span:?} and {other:?}"));
            }
        }
    }
    found
}

fn gaps(instants: &BTreeSet<DateTime<Utc>>, period: Duration) -> Vec<DateTime<Utc>> {
    let (Some(first), Some(last)) = (instants.first(), instants.last()) else { return Vec::new() };
    let due = std::iter::successors(Some(*first), |instant| Some(*instant + period));
    due.take_while(|instant| instant < last).filter(|instant| !instants.contains(instant)).collect()
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use super::*;

    fn run(effects: &Effects, job: &str, second: u32, fence: i64, work: Duration) -> Child {
        command(effects, job, second, fence, work).spawn().expect("a shell")
    }

    fn command(effects: &Effects, job: &str, second: u32, fence: i64, work: Duration) -> Command {
        let argv = effects.argv(work);
        let mut command = Command::new(&argv[0]);
        command
            .args(&argv[1..])
            .env("RUNNER_JOB", job)
            .env("RUNNER_SCHEDULED_AT", format!("2026-03-29T01:00:{second:02}Z"))
            .env("RUNNER_SHARD", "0")
            .env("RUNNER_ATTEMPT", "1")
            .env("RUNNER_FENCE", fence.to_string())
            .env("RUNNER_IDEMPOTENCY_KEY", format!("ns/{job}/{second}/0"));
        command
    }

    fn effect(kind: EffectKind, fence: i64, at_millis: i64) -> Effect {
        let at = DateTime::from_timestamp_millis(at_millis).expect("an instant");
        Effect {
            kind,
            job: "j".into(),
            scheduled_at: at,
            shard: 0,
            attempt: 1,
            fence,
            at,
            key: fence.to_string(),
        }
    }

    #[test]
    fn a_run_leaves_its_start_its_ticks_and_its_end() {
        let dir = tempfile::tempdir().expect("a directory");
        let effects = Effects::new(dir.path());
        let status = run(&effects, "reconcile", 7, 42, Duration::from_millis(300)).wait().expect("a shell");
        assert!(status.success());
        let all = effects.all();
        let kinds: Vec<_> = all.iter().map(|effect| effect.kind).collect();
        assert_eq!(kinds, [EffectKind::Start, EffectKind::Tick, EffectKind::End]);
        assert_eq!((all[0].job.as_str(), all[0].attempt, all[0].fence), ("reconcile", 1, 42));
        assert_eq!(all[0].scheduled_at.to_rfc3339(), "2026-03-29T01:00:07+00:00");
        assert!(all[2].at - all[0].at >= chrono::TimeDelta::milliseconds(300));
        assert_eq!(effects.effects_per_firing().into_values().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn lines_of_many_processes_never_mix() {
        let dir = tempfile::tempdir().expect("a directory");
        let effects = Effects::new(dir.path());
        let children: Vec<_> =
            (0..20).map(|n| run(&effects, "many", n % 10, i64::from(n), Duration::ZERO)).collect();
        for mut child in children {
            assert!(child.wait().expect("a shell").success());
        }
        assert_eq!(effects.all().len(), 40);
        let counted = effects.effects_per_firing();
        assert_eq!(counted.into_values().collect::<Vec<_>>(), [2; 10]);
        assert!(effects.gaps("many", Duration::from_secs(1)).is_empty());
    }

    #[test]
    fn a_run_that_is_told_to_stop_says_so() {
        let dir = tempfile::tempdir().expect("a directory");
        let effects = Effects::new(dir.path());
        let argv = effects.argv(Duration::from_secs(3600));
        assert_eq!(argv.len(), 7);
        let mut child = run(&effects, "long", 0, 1, Duration::from_secs(30));
        crate::wait_until_blocking(Duration::from_secs(10), || {
            let all = effects.all();
            if all.len() > 1 { Ok(()) } else { Err(format!("{all:?}")) }
        });
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("our own child");
        assert_eq!(child.wait().expect("a shell").code(), Some(143));
        assert_eq!(effects.all().last().map(|effect| effect.kind), Some(EffectKind::Killed));
    }

    #[test]
    fn a_line_is_whole_though_the_program_that_tells_the_time_was_killed() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().expect("a directory");
        let effects = Effects::new(dir.path());
        let date = dir.path().join("date");
        let once = "#!/bin/sh\n[ -e $0.told ] || { : > $0.told; kill -TERM $$; }\nexec /bin/date \"$@\"\n";
        std::fs::write(&date, once).expect("a file");
        std::fs::set_permissions(&date, std::fs::Permissions::from_mode(0o755)).expect("our own file");
        let path = format!("{}:/usr/bin:/bin", dir.path().display());
        let status = command(&effects, "j", 0, 1, Duration::ZERO).env("PATH", path).status();
        assert!(status.expect("a shell").success() && dir.path().join("date.told").exists());
        assert_eq!(effects.all().len(), 2);
    }

    #[test]
    fn runs_that_overlap_are_found_and_runs_that_touch_are_not() {
        use EffectKind::{End, Start, Tick};
        let touching = [effect(Start, 1, 0), effect(End, 1, 100), effect(Start, 2, 100), effect(End, 2, 150)];
        assert_eq!(overlaps(&touching, "j"), Vec::<String>::new());
        let crossing =
            [effect(Start, 1, 0), effect(Start, 2, 100), effect(Tick, 1, 101), effect(End, 2, 150)];
        assert_eq!(overlaps(&crossing, "j").len(), 1);
        assert_eq!(overlaps(&crossing, "other"), Vec::<String>::new());
    }

    #[test]
    fn an_instant_that_was_never_started_is_a_gap() {
        let at = |second| DateTime::from_timestamp(second, 0).expect("an instant");
        let seen: BTreeSet<_> = [at(1), at(2), at(5)].into();
        assert_eq!(gaps(&seen, Duration::from_secs(1)), [at(3), at(4)]);
        assert!(gaps(&BTreeSet::new(), Duration::from_secs(1)).is_empty());
    }

    #[test]
    #[should_panic(expected = "not an effect")]
    fn a_line_that_is_not_ours_is_a_failure() {
        let dir = tempfile::tempdir().expect("a directory");
        let effects = Effects::new(dir.path());
        std::fs::write(&effects.path, "start reconcile 2026-\n").expect("the file");
        assert!(effects.all().is_empty());
    }
}
