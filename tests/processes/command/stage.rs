//! What the tests of commands stand on: runs with levers to pull, a second copy of the test as a
//! runner to be killed, and ways to see who lives.

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use chrono::{TimeZone as _, Utc};
use lockcore::{BootClock as _, BootInstant, SystemBootClock};
use runner::internal::firing::{Fence, Firing, JobName, Origin};
use runner::internal::kinds::Command;
use runner::internal::warden::WardenProgram;
use runner::internal::{Cancel, ContextParts};
use runner::{Job as _, JobContext, JobError, Licence};
use rustix::process::{Pid, Signal, kill_process};
use tokio::sync::watch;

use crate::program;

/// Longer than anything here takes on a busy machine; only a failure waits for it.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) fn now() -> BootInstant {
    SystemBootClock.boot_now()
}

/// Asks until the answer is `Ok`; fails with the last answer that was not.
#[track_caller]
pub(crate) fn until<T, E: Debug>(mut probe: impl FnMut() -> Result<T, E>) -> T {
    testbed::wait_until_blocking(PATIENCE, || probe().map_err(|last| format!("{last:?}")))
}

/// A command from its params as jobs.toml has them.
pub(crate) fn command(params: &str) -> Command {
    let params = toml::from_str(params).expect("params");
    Command::new(params, ["DATABASE_URL"]).with_warden(WardenProgram::at(program()))
}

/// A shell script, started in `dir`.
pub(crate) fn script(dir: &Path, script: &str) -> Command {
    command(&format!("argv = ['sh', '-c', '''{script}''']\ncwd = '{}'", dir.display()))
}

/// A run, seen from outside.
pub(crate) struct Levers {
    pub(crate) cancel: Cancel,
    pub(crate) licence: watch::Sender<BootInstant>,
}

/// A run whose licence ends after `licence`.
pub(crate) fn context(licence: Duration, kill_grace: Duration) -> (JobContext, Levers) {
    let cancel = Cancel::default();
    let (sender, licence) = watch::channel(now() + licence);
    let context = JobContext::from(ContextParts {
        namespace: "tests".into(),
        firing: Firing {
            job: JobName::new("reconcile").expect("a name"),
            scheduled_at: Utc.with_ymd_and_hms(2026, 3, 29, 1, 0, 0).unwrap(),
            shard: 3,
            trigger_key: String::new(),
            origin: Origin::CatchUp,
        },
        shards: 8,
        attempt: 2,
        fence: Fence(41),
        deadline: now() + PATIENCE,
        kill_grace,
        cancel: cancel.clone(),
        licence: Licence::new(licence),
        effect: None,
    });
    (context, Levers { cancel, licence: sender })
}

pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(future)
}

/// How a command ends that nobody disturbs, and what it printed.
pub(crate) fn outcome(command: &Command) -> (Result<(), JobError>, Option<String>) {
    block_on(async {
        let (context, _levers) = context(PATIENCE, Duration::from_millis(500));
        let result = command.run(&context).await;
        (result, context.output())
    })
}

/// The output of a command that must succeed.
pub(crate) fn output(command: &Command) -> String {
    let (result, output) = outcome(command);
    assert!(result.is_ok(), "{result:?} {output:?}");
    output.unwrap_or_default()
}

/// Whether nobody has this number, or only a corpse that waits for its parent.
pub(crate) fn is_gone(pid: i32) -> bool {
    state(pid).is_none_or(|state| state == 'Z' || state == 'X')
}

fn state(pid: i32) -> Option<char> {
    stat(pid)?.chars().next()
}

/// Who started it, or has adopted it.
pub(crate) fn parent(pid: i32) -> i32 {
    let stat = stat(pid).expect("a living process");
    stat.split(' ').nth(1).and_then(|parent| parent.parse().ok()).expect("a parent")
}

/// State, parent, group, session and more.
fn stat(pid: i32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(stat.rsplit(')').next()?.trim_start().to_owned())
}

pub(crate) fn signal(pid: i32, signal: Signal) {
    kill_process(Pid::from_raw(pid).expect("a process"), signal).expect("a living process");
}

/// The number that a script has written with `echo … > name.tmp; mv name.tmp name`.
pub(crate) fn pid_in(path: &Path) -> Result<i32, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    text.trim().parse().map_err(|error| format!("{text:?}: {error}"))
}

#[track_caller]
pub(crate) fn until_gone(pids: &[i32]) {
    until(|| match pids.iter().find(|pid| !is_gone(**pid)) {
        None => Ok(()),
        Some(pid) => Err(format!("{pid} is {:?}", state(*pid))),
    });
}

/// Another process of this test, which takes the role of the runner.
pub(crate) struct Victim(Child);

const ROLE: &str = "TEST_ROLE_DIR";

/// The directory to act in, if this process is a [`Victim`].
pub(crate) fn role() -> Option<PathBuf> {
    std::env::var_os(ROLE).map(Into::into)
}

impl Victim {
    /// Runs the test `name` once more, as a process with this environment alone.
    pub(crate) fn start(name: &str, dir: &Path, env: &[(&str, &str)]) -> Self {
        let child = std::process::Command::new(std::env::current_exe().expect("this program"))
            .args(["--exact", name, "--nocapture"])
            .env_clear()
            .env(ROLE, dir)
            .envs(env.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("a victim");
        Self(child)
    }

    pub(crate) fn signal(&self, kind: Signal) {
        signal(self.0.id().try_into().expect("a pid"), kind);
    }

    /// Waits for its end, which must be a success.
    pub(crate) fn succeed(mut self) {
        let status = self.0.wait().expect("the victim's status");
        assert!(status.success(), "{status}: what it said stands above");
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
