//! Mutants of the running test program: copies of it in which one condition of a statement is removed.
//!
//! Statements and scripts are compiled into the program exactly as they are in their files. So overwriting such a
//! text in a copy of the program gives a product without that condition. This needs no second build and no
//! switch in the product, and the tested program is otherwise the real one.

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

/// How long a mutant's test may take. A test that hangs has noticed the mutant, too.
const PATIENCE: Duration = Duration::from_secs(60);

/// Words in a database's error for a statement that it cannot parse. Such a mutant proves nothing: every test
/// would fail.
const UNPARSABLE: [&str; 4] =
    ["code: \"42", "code: \"08P01\"", "SqliteError { code: 1,", "Error compiling script"];

/// A text to remove from a file of the project.
#[derive(Clone, Debug)]
pub struct Cut {
    /// From the root of the workspace.
    pub file: String,
    /// The text to remove. The file contains it exactly once.
    pub text: String,
    /// The replacement, which must not be longer.
    pub put: String,
}

/// A program without some texts, and the test that must fail for it.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The texts to remove, all at once.
    pub cuts: Vec<Cut>,
    /// The full name of the test.
    pub test: String,
}

/// The result of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// The test failed, as it must.
    Caught,
    /// The test hung and was ended.
    Hung,
    /// The test passed.
    Survived,
    /// The mutant could not be made, or the database cannot parse its statement.
    Malformed(String),
}

/// Runs the test of each mutant, several at once, and prints the results.
///
/// The files are read below `root`. With the server in `lent`, the mutants need not start one each. Before the
/// first mutant and after the last, the unchanged program must pass all the tests.
///
/// # Panics
/// When the unchanged program fails, when a program cannot be written or started, and with a list of the mutants
/// that were not caught.
pub fn assert_every_mutant_is_caught(root: &Path, mutants: &[Mutant], lent: Option<&PrivatePostgres>) {
    let fates = fates(root, mutants, lent);
    let missed: Vec<_> = mutants
        .iter()
        .zip(fates)
        .filter_map(|(mutant, fate)| match fate {
            Fate::Caught | Fate::Hung => None,
            Fate::Survived => Some(format!("{} does not notice: {mutant}", mutant.test)),
            Fate::Malformed(why) => Some(format!("{mutant} is not a valid mutant: {why}")),
        })
        .collect();
    assert!(missed.is_empty(), "{} of {}:\n{}\n", missed.len(), mutants.len(), missed.join("\n"));
    println!("{} mutants, all caught", mutants.len());
}

/// Asserts that the table below `heading` of a page has exactly these rows.
///
/// # Panics
/// When it has others, with the right table.
pub fn assert_lists(page: &Path, heading: &str, rows: &[String]) {
    let text = fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()));
    let below = text.lines().skip_while(|line| !line.starts_with(heading)).skip(2);
    let listed: Vec<_> = below.take_while(|line| line.starts_with('|')).collect();
    assert!(listed == rows, "the table of {} must be\n{}\n", page.display(), rows.join("\n"));
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
        // Twice as many as cores: they wait for their servers most of the time.
        for _ in 0..2 * std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    // If a server had ended meanwhile, every test would have failed, and every mutant would seem caught.
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
    /// The places where a comment of a statement or script may begin. Texts are searched only there.
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

    /// Asserts that the unchanged program contains the tests and passes them.
    fn assert_health(&self, workshop: &Path, tests: &[&str]) {
        let expected = format!("test result: ok. {} passed", tests.len());
        let said = self.run(&self.bytes, &workshop.join("as-it-is"), tests, PATIENCE * 5).said;
        assert!(said.contains(&expected), "the unchanged program does not pass {tests:#?}:\n{said}");
    }

    fn fate(&self, root: &Path, path: &Path, mutant: &Mutant) -> Fate {
        let bytes = match self.without(root, &mutant.cuts) {
            Ok(bytes) => bytes,
            Err(why) => return Fate::Malformed(why),
        };
        let run = self.run(&bytes, path, &[&mutant.test], PATIENCE);
        match (run.end, UNPARSABLE.iter().find(|word| run.said.contains(**word))) {
            (_, Some(word)) => {
                Fate::Malformed(format!("the database does not understand it: {word}\n{}", run.said))
            }
            (End::Passed, None) => Fate::Survived,
            (End::Failed, None) => Fate::Caught,
            (End::Hung, None) => Fate::Hung,
        }
    }

    /// The program without the removed texts. Each statement keeps its length, so that nothing else moves.
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
                return Err(format!("this program does not contain the text of {file}"));
            }
        }
        Ok(bytes)
    }

    /// Writes a program to `path`, runs its tests, and removes it.
    fn run(&self, program: &[u8], path: &Path, tests: &[&str], patience: Duration) -> Run {
        fs::write(path, program).expect("a mutant can be written");
        fs::set_permissions(path, Permissions::from_mode(0o755)).expect("a mutant can be made a program");
        let log = path.with_extension("log");
        let output = File::create(&log).expect("a file for its output");
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
                // A child that another thread has just started still has the file open for writing.
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
    /// `whole` without the text, and with the same length.
    fn out_of(&self, whole: &str) -> Result<String, String> {
        let Self { file, text, put } = self;
        match whole.matches(text).count() {
            1 if put.len() <= text.len() => Ok(whole.replace(text, &format!("{put:0$}", text.len()))),
            1 => Err(format!("{file}: {put:?} is longer than {text:?}")),
            times => Err(format!("{file}: {text:?} is in the file {times} times, and must be there once")),
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

    /// A text in this program that stands for a statement.
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
