//! Other processes: this test binary again, running the same test in another role.

use std::io::{BufRead, BufReader, Lines, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const ROLE: &str = "RUNNER_TEST_SQLITE_PEER";
const MARK: &str = "@@ ";

/// What a child is told: the file, and its number among its siblings.
pub(crate) struct Role {
    pub(crate) file: PathBuf,
    pub(crate) number: usize,
}

/// The role of this process; `None` in the parent.
pub(crate) fn role() -> Option<Role> {
    let text = std::env::var(ROLE).ok()?;
    let (number, file) = text.split_once(':').expect("number:file");
    Some(Role { file: file.into(), number: number.parse().expect("a number") })
}

/// Tells the parent a line. Its own line, whatever the test harness has begun to print.
pub(crate) fn tell(line: &str) {
    let mut out = std::io::stdout().lock();
    out.write_all(format!("\n{MARK}{line}\n").as_bytes())
        .and_then(|()| out.flush())
        .expect("the parent listens");
}

/// Says that this child is ready, and waits until all are.
pub(crate) fn wait_for_start() {
    tell("ready");
    let mut line = String::new();
    let read = std::io::stdin().read_line(&mut line).expect("the parent speaks");
    assert!(read > 0, "the parent went away before the start");
}

/// A child process; killed when dropped.
pub(crate) struct Peer {
    child: Child,
    orders: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Peer {
    /// Starts `test` (its full name) as child `number` on `file`.
    pub(crate) fn start(test: &str, file: &Path, number: usize) -> Self {
        let mut child = Command::new(std::env::current_exe().expect("this binary"))
            .args(["--exact", test, "--nocapture", "--test-threads=1"])
            .env(ROLE, format!("{number}:{}", file.display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("this binary starts");
        let orders = child.stdin.take().expect("piped");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, orders, lines }
    }

    /// Starts `count` of them and lets them go at once.
    pub(crate) fn start_together(test: &str, file: &Path, count: usize) -> Vec<Self> {
        let mut peers: Vec<Self> = (0..count).map(|number| Self::start(test, file, number)).collect();
        for peer in &mut peers {
            assert_eq!(peer.hear().as_deref(), Some("ready"));
        }
        for peer in &mut peers {
            peer.orders.write_all(b"go\n").expect("the child listens");
        }
        peers
    }

    /// Its next line; `None` when it has ended.
    pub(crate) fn hear(&mut self) -> Option<String> {
        for line in self.lines.by_ref() {
            if let Some(said) = line.expect("text").strip_prefix(MARK) {
                return Some(said.to_owned());
            }
        }
        None
    }

    /// All that it still says; fails unless it ends well.
    pub(crate) fn finish(mut self) -> Vec<String> {
        let said: Vec<String> = std::iter::from_fn(|| self.hear()).collect();
        let status = self.child.wait().expect("a child");
        assert!(status.success(), "a child failed: {status}; it said {said:?}");
        said
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.kill();
        }
    }
}
