//! Mutants of the running test program: the same program, with one condition taken out of a text in it.
//!
//! Statements and scripts are compiled in as they stand in their files, so a copy of the program in
//! which such a text is overwritten is a product without that condition. It needs no second build and
//! no switch in the product, and what is tried is what runs otherwise.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use crate::postgres::{PrivatePostgres, cache_folder};

/// How long a mutant's test may take. One that hangs has noticed something, too.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a database says about a text that it cannot even read: then it is not the condition that is
/// missed, and the test would fail whatever it tests.
const GIBBERISH: [&str; 4] =
    ["code: \"42", "code: \"08P01\"", "SqliteError { code: 1,", "Error compiling script"];

/// What is taken out of a file of the project.
#[derive(Clone, Debug)]
pub struct Cut {
    /// From the root of the workspace.
    pub file: String,
    /// What is taken out; it stands in the file exactly once.
    pub text: String,
    /// What comes in its place; not longer.
    pub put: String,
}

/// A program that lacks something, and the test that must notice.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// What is taken out, all at once.
    pub cuts: Vec<Cut>,
    /// The full name of the test.
    pub test: String,
}

/// What came of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// The test failed, as it must.
    Caught,
    /// The test hung and was ended.
    Hung,
    /// The test passed.
    Survived,
    /// There is no such mutant, or it is none.
    Malformed(String),
}

/// Tries each mutant against its test, several at once, and prints what came of it.
///
/// The files are read below `root`. A server that is lent saves each of them from starting one. Before
/// anything else, and in the end, the program as it is must pass all the tests.
///
/// # Panics
/// When it does not, when a program cannot be written or started, and with a list of those mutants that
/// were not caught.
pub fn assert_every_mutant_is_caught(root: &Path, mutants: &[Mutant], lent: Option<&PrivatePostgres>) {
    let fates = fates(root, mutants, lent);
    let missed: Vec<_> = mutants
        .iter()
        .zip(fates)
        .filter_map(|(mutant, fate)| match fate {
            Fate::Caught | Fate::Hung => None,
            Fate::Survived => Some(format!("{} does not notice: {mutant}", mutant.test)),
            Fate::Malformed(why) => Some(format!("{mutant} is no mutant: {why}")),
        })
        .collect();
    assert!(missed.is_empty(), "{} of {}:\n{}\n", missed.len(), mutants.len(), missed.join("\n"));
    println!("{} mutants, all caught", mutants.len());
}

/// Holds that the table below `heading` of a page has these rows and no others.
///
/// # Panics
/// When it has not, with what it ought to be.
pub fn assert_lists(page: &Path, heading: &str, rows: &[String]) {
    let text = fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let below = text.lines().skip_while(|line| !line.starts_with(heading)).skip(2);
    let listed: Vec<_> = below.take_while(|line| line.starts_with('|')).collect();
    assert!(listed == rows, "the table of {} ought to be\n{}\n", page.display(), rows.join("\n"));
}

fn fates(root: &Path, mutants: &[Mutant], lent: Option<&PrivatePostgres>) -> Vec<Fate> {
    let program = Program::running(lent);
    let workshop = TempDir::with_prefix_in("mutants-", cache_folder()).expect("a folder for the mutants");
    let tests: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.test.as_str()).collect();
    let tests: Vec<_> = tests.into_iter().collect();
    program.assert_health(workshop.path(), &tests);
    let next = AtomicUsize::new(0);
    let fates = Mutex::new(vec![None; mutants.len()]);
    let work = || loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        let Some(mutant) = mutants.get(number) else { return };
        let fate = program.fate(root, &workshop.path().join(number.to_string()), mutant);
        println!("{} {mutant}: {}", fate.word(), mutant.test);
        fates.lock().expect("no panic before")[number] = Some(fate);
    };
    std::thread::scope(|scope| {
        // Twice as many: they wait for their servers most of the time.
        for _ in 0..2 * std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    // A server that has gone meanwhile would have failed every test.
    program.assert_health(workshop.path(), &tests);
    fates.into_inner().expect("no panic before").into_iter().flatten().collect()
}

impl Fate {
    const fn word(&self) -> &'static str {
        match self {
            Self::Caught => "caught   ",
            Self::Hung => "hung     ",
            Self::Survived => "SURVIVED ",
            Self::Malformed(_) => "MALFORMED",
        }
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Cut { file, text, put }) in self.cuts.iter().enumerate() {
            let name = file.rsplit('/').next().unwrap_or_default();
            let and = if number == 0 { "" } else { ", and " };
            write!(f, "{and}{name} without {:?}", one_line(text))?;
            if !put.is_empty() {
                write!(f, " but {:?}", one_line(put))?;
            }
        }
        Ok(())
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The running test program.
struct Program<'l> {
    lent: Option<&'l PrivatePostgres>,
    bytes: Vec<u8>,
    /// Where a comment of a statement or script may begin: the places where texts are looked for.
    comments: Vec<usize>,
}

impl<'l> Program<'l> {
    fn running(lent: Option<&'l PrivatePostgres>) -> Self {
        let path = std::env::current_exe().expect("the running program has a file");
        let bytes = fs::read(path).expect("the running program can be read");
        let comments = (0..bytes.len().saturating_sub(3))
            .filter(|at| bytes[*at] == b'-' && bytes[*at + 1] == b'-' && bytes[*at + 2] == b' ')
            .collect();
        Self { lent, bytes, comments }
    }

    /// The program as it is passes the tests, and has them.
    fn assert_health(&self, workshop: &Path, tests: &[&str]) {
        let expected = format!("test result: ok. {} passed", tests.len());
        let said = self.run(&self.bytes, &workshop.join("as-it-is"), tests, PATIENCE * 5).said;
        assert!(said.contains(&expected), "the program as it is does not pass {tests:#?}:\n{said}");
    }

    fn fate(&self, root: &Path, path: &Path, mutant: &Mutant) -> Fate {
        let bytes = match self.without(root, &mutant.cuts) {
            Ok(bytes) => bytes,
            Err(why) => return Fate::Malformed(why),
        };
        let run = self.run(&bytes, path, &[&mutant.test], PATIENCE);
        match (run.end, GIBBERISH.iter().find(|word| run.said.contains(**word))) {
            (_, Some(word)) => {
                Fate::Malformed(format!("the database does not understand it: {word}\n{}", run.said))
            }
            (End::Passed, None) => Fate::Survived,
            (End::Failed, None) => Fate::Caught,
            (End::Hung, None) => Fate::Hung,
        }
    }

    /// The program without what is cut out. Its texts keep their lengths: nothing else may move.
    fn without(&self, root: &Path, cuts: &[Cut]) -> Result<Vec<u8>, String> {
        let mut bytes = self.bytes.clone();
        let mut files: Vec<&str> = cuts.iter().map(|cut| cut.file.as_str()).collect();
        files.sort_unstable();
        files.dedup();
        for file in files {
            let whole = fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
            let mut text = whole.clone();
            for cut in cuts.iter().filter(|cut| cut.file == file) {
                text = cut.out_of(&text)?;
            }
            let places = self.comments.iter().filter(|at| self.bytes[**at..].starts_with(whole.as_bytes()));
            let mut found = false;
            for at in places {
                bytes[*at..*at + text.len()].copy_from_slice(text.as_bytes());
                found = true;
            }
            if !found {
                return Err(format!("{file} is not in this program as it stands"));
            }
        }
        Ok(bytes)
    }

    /// Runs tests of a program that is written to `path`, and removes it.
    fn run(&self, program: &[u8], path: &Path, tests: &[&str], patience: Duration) -> Run {
        fs::write(path, program).expect("a mutant can be written");
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("a mutant can be made a program");
        let log = path.with_extension("log");
        let output = File::create(&log).expect("a file for what it says");
        let mut command = Command::new(path);
        command
            .args(tests)
            .args(["--exact", "--test-threads=4"])
            .env("RUST_BACKTRACE", "0")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("the same file"))
            .stderr(output);
        if let Some(server) = self.lent {
            server.lend_to(&mut command);
        }
        let mut child = loop {
            match command.spawn() {
                // A neighbour's child still holds the file as it was when it was being written.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => std::thread::yield_now(),
                child => break child.expect("a mutant can be started"),
            }
        };
        let deadline = Instant::now() + patience;
        let end = loop {
            match child.try_wait().expect("the state of our own child") {
                Some(status) if status.success() => break End::Passed,
                Some(_) => break End::Failed,
                None if Instant::now() > deadline => {
                    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a process id");
                    kill_process_group(group, Signal::KILL).unwrap_or_default();
                    child.wait().expect("the end of our own child");
                    break End::Hung;
                }
                None => std::thread::sleep(Duration::from_millis(5)),
            }
        };
        let said = String::from_utf8_lossy(&fs::read(&log).unwrap_or_default()).into_owned();
        for file in [path, &log] {
            fs::remove_file(file).expect("our own file");
        }
        Run { end, said }
    }
}

impl Cut {
    /// `whole` without it, as long as before.
    fn out_of(&self, whole: &str) -> Result<String, String> {
        let Self { file, text, put } = self;
        match whole.matches(text).count() {
            1 if put.len() <= text.len() => Ok(whole.replace(text, &format!("{put:0$}", text.len()))),
            1 => Err(format!("{file}: {put:?} is longer than {text:?}")),
            times => Err(format!("{file}: {text:?} stands there {times} times")),
        }
    }
}

enum End {
    Passed,
    Failed,
    Hung,
}

struct Run {
    end: End,
    said: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A text of this program, as a statement would be one.
    const TEXT: &str = include_str!("mutants/even.sql");

    #[test]
    fn a_number_is_even() {
        assert!(TEXT.contains("AND even"), "{TEXT}");
    }

    fn fate_of(text: &str, put: &str) -> Fate {
        let cut = Cut { file: "src/mutants/even.sql".into(), text: text.into(), put: put.into() };
        let mutant = Mutant { cuts: vec![cut], test: "mutants::tests::a_number_is_even".into() };
        fates(Path::new(env!("CARGO_MANIFEST_DIR")), &[mutant], None).remove(0)
    }

    #[test]
    fn a_mutant_is_caught_by_the_test_that_misses_the_condition_and_by_no_other() {
        assert_eq!(fate_of("AND even", ""), Fate::Caught);
        assert_eq!(fate_of("number > 0", "number > 1"), Fate::Survived);
    }

    #[test]
    fn a_mutant_that_does_not_apply_is_none() {
        for (text, put) in [("AND odd", ""), ("number", ""), ("AND even", "AND even ones only")] {
            let fate = fate_of(text, put);
            assert!(matches!(fate, Fate::Malformed(_)), "{fate:?}");
        }
    }
}
