//! A jobs.toml in a directory of its own, and the replicas and commands that run with it.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use uuid::Uuid;

use crate::{Effects, Replica, ReplicaBuilder, wait_until_blocking};

/// Longer than any command of the CLI takes on a busy machine.
const COMMAND_DEADLINE: Duration = Duration::from_secs(30);

/// What all replicas of one test share. Dropping it removes its directory, so keep it longer than the replicas.
#[derive(Debug)]
pub struct Deployment {
    bin: PathBuf,
    dir: TempDir,
    namespace: String,
    effects: Effects,
    redis: Option<String>,
    ledger: Option<String>,
    pooler: bool,
    ttl: String,
    runner: String,
    jobs: String,
    file: Option<String>,
}

/// A command of the CLI that has ended.
#[derive(Debug)]
pub struct Finished {
    /// Its exit status.
    pub status: ExitStatus,
    /// Its stdout.
    pub stdout: String,
    /// Its stderr.
    pub stderr: String,
}

impl Deployment {
    /// The program at `bin`, embedded (no Redis, SQLite beside the file), a ttl of 3 s, no jobs yet.
    ///
    /// # Panics
    /// When no temporary directory can be created.
    #[must_use]
    pub fn new(bin: &Path) -> Self {
        let dir = tempfile::Builder::new().prefix("runner-test-").tempdir().expect("a temporary directory");
        let effects = Effects::new(dir.path());
        let namespace = format!("test-{}", Uuid::new_v4().simple());
        Self {
            bin: bin.into(),
            dir,
            namespace,
            effects,
            redis: None,
            ledger: None,
            pooler: false,
            ttl: "3s".into(),
            runner: String::new(),
            jobs: String::new(),
            file: None,
        }
    }

    /// Takes locks on this server.
    #[must_use]
    pub fn redis(mut self, url: impl Into<String>) -> Self {
        self.redis = Some(url.into());
        self
    }

    /// Keeps rows in this database.
    #[must_use]
    pub fn ledger(mut self, url: impl Into<String>) -> Self {
        self.ledger = Some(url.into());
        self
    }

    /// Sets `pooler = true`: there is a pooler in transaction mode in front of the database.
    #[must_use]
    pub fn pooler(mut self) -> Self {
        self.pooler = true;
        self
    }

    /// The lease of both layers.
    #[must_use]
    pub fn ttl(mut self, ttl: &str) -> Self {
        self.ttl = ttl.into();
        self
    }

    /// Adds a line to `[runner]`.
    #[must_use]
    pub fn runner(mut self, line: &str) -> Self {
        self.runner.push_str(line);
        self.runner.push('\n');
        self
    }

    /// Adds a `command` job that works for the time `work` and writes effects. `lines` are its other keys
    /// (`every = "1s"`, …).
    #[must_use]
    pub fn job(self, name: &str, work: Duration, lines: &str) -> Self {
        let params = self.effects.params(work);
        self.jobs(&format!("[jobs.{name}]\nkind = \"command\"\n{params}\n{lines}\n"))
    }

    /// Adds text to the end of the file.
    #[must_use]
    pub fn jobs(mut self, text: &str) -> Self {
        self.jobs.push_str(text);
        self.jobs.push('\n');
        self
    }

    /// Uses `text` as the whole jobs.toml, and ignores all other settings of this value.
    #[must_use]
    pub fn file(mut self, text: impl Into<String>) -> Self {
        self.file = Some(text.into());
        self
    }

    /// The effects of the jobs.
    #[must_use]
    pub fn effects(&self) -> &Effects {
        &self.effects
    }

    /// The namespace of this deployment's keys and rows.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The directory of its files.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Writes jobs.toml with the present settings, and returns its path.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    pub fn config(&self) -> PathBuf {
        let path = self.dir.path().join("jobs.toml");
        let next = self.dir.path().join(format!("jobs.toml.{}", Uuid::new_v4().simple()));
        // In one step: a replica that starts at this moment must not read half a file.
        std::fs::write(&next, self.text()).expect("a directory of our own");
        std::fs::rename(next, &path).expect("a directory of our own");
        path
    }

    /// A replica that is not started yet: it can still get a wrong clock or an environment of its own.
    #[must_use]
    pub fn replica(&self) -> ReplicaBuilder {
        Replica::builder(&self.bin).config(&self.config()).cwd(self.dir.path())
    }

    /// `count` replicas, started at once.
    #[must_use]
    pub fn start(&self, count: usize) -> Vec<Replica> {
        (0..count).map(|_| self.replica().spawn()).collect()
    }

    /// Runs `runner --config … ARGS` to its end.
    ///
    /// # Panics
    /// When it does not end within half a minute.
    #[must_use]
    #[track_caller]
    pub fn run(&self, args: &[&str]) -> Finished {
        run(Command::new(&self.bin)
            .arg("--config")
            .arg(self.config())
            .args(args)
            .current_dir(self.dir.path()))
    }

    /// The ledger's rows of `job`, as `runner history` prints them, oldest instant first.
    ///
    /// # Panics
    /// When the command fails or prints anything but JSON.
    #[must_use]
    #[track_caller]
    pub fn history(&self, job: &str) -> Vec<Value> {
        let done = self.run(&["history", job, "--format", "json", "--limit", "100000"]);
        assert!(done.status.success(), "history failed: {done:?}");
        let row = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let mut rows: Vec<Value> = done.stdout.lines().map(row).collect();
        rows.sort_by_key(|row| row["scheduled_at"].to_string());
        rows
    }

    fn text(&self) -> String {
        if let Some(file) = &self.file {
            return file.clone();
        }
        let Self { namespace, runner, ttl, jobs, pooler, .. } = self;
        let url =
            |url: &Option<String>| url.as_ref().map_or_else(String::new, |url| format!("url = {url:?}\n"));
        let (redis, ledger) = (url(&self.redis), url(&self.ledger));
        format!(
            "[runner]\nnamespace = {namespace:?}\n{runner}\n[lock]\n{redis}ttl = {ttl:?}\n\n[ledger]\n{ledger}pooler = {pooler}\n\n{jobs}"
        )
    }
}

#[track_caller]
fn run(command: &mut Command) -> Finished {
    // Files, not pipes: a full pipe would block the process whose end we wait for.
    let (out, err) = (tempfile::NamedTempFile::new(), tempfile::NamedTempFile::new());
    let (out, err) = (out.expect("a temporary file"), err.expect("a temporary file"));
    let open = |file: &tempfile::NamedTempFile| file.reopen().expect("a temporary file");
    command.stdin(Stdio::null()).stdout(open(&out)).stderr(open(&err));
    let mut child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
    let read = |file: &tempfile::NamedTempFile| {
        String::from_utf8_lossy(&std::fs::read(file.path()).expect("a temporary file")).into_owned()
    };
    let status = wait_until_blocking(COMMAND_DEADLINE, || match child.try_wait() {
        Ok(Some(status)) => Ok(status),
        _ => Err(format!("{command:?} still runs; {}{}", read(&out), read(&err))),
    });
    Finished { status, stdout: read(&out), stderr: read(&err) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_says_what_the_deployment_was_told() {
        let deployment = Deployment::new(Path::new("/bin/cat"))
            .redis("redis://127.0.0.1:1/0")
            .ttl("2s")
            .runner("shutdown_grace = \"2s\"")
            .job("tick", Duration::ZERO, "every = \"1s\"");
        let text = std::fs::read_to_string(deployment.config()).expect("the file");
        for line in
            ["url = \"redis://127.0.0.1:1/0\"", "ttl = \"2s\"", "shutdown_grace = \"2s\"", "[jobs.tick]"]
        {
            assert!(text.contains(line), "{line} is missing in\n{text}");
        }
        let (_, ledger) = text.split_once("[ledger]\n").expect("the ledger's section");
        assert!(!ledger.contains("url"), "{text}");
    }

    #[test]
    fn a_command_is_run_to_its_end_and_its_output_kept() {
        let dir = tempfile::tempdir().expect("a directory");
        let done =
            run(Command::new("/bin/sh").args(["-c", "echo good; echo bad >&2; exit 3"]).current_dir(&dir));
        assert_eq!(
            (done.stdout.as_str(), done.stderr.as_str(), done.status.code()),
            ("good\n", "bad\n", Some(3))
        );
    }
}
