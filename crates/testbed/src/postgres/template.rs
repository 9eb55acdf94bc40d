//! An initialised database directory. It is made once per build and copied for every server.

use std::fs::{self, File};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

/// The user of the server when the test runs as root, because PostgreSQL refuses to run as root.
#[derive(Clone, Copy, Debug)]
pub(super) struct ServerUser {
    pub(super) uid: u32,
    pub(super) gid: u32,
}

/// Copies the initialised directory. Makes it first, if this build has none yet.
pub(super) fn copy_template(data: &Path, user: Option<ServerUser>) {
    let cache = cache_folder();
    let owner = user.map_or("own".to_owned(), |user| user.uid.to_string());
    let template = cache.join(format!("pg-template-{owner}"));
    let lock =
        File::create(cache.join("pg-template.lock")).unwrap_or_else(|e| panic!("no template lock: {e}"));
    lock.lock().unwrap_or_else(|e| panic!("cannot lock the template: {e}"));
    if !template.join("PG_VERSION").exists() {
        initialise(&template, user);
    }
    run(Command::new("cp").arg("-a").arg(&template).arg(data));
}

pub(super) fn initialise(template: &Path, user: Option<ServerUser>) {
    // The server's user may have no access to the build's folder, so it works in a folder of its own.
    let workshop =
        TempDir::with_prefix("runner-initdb-").unwrap_or_else(|e| panic!("no temporary directory: {e}"));
    let mut initdb = Command::new(program("initdb"));
    if let Some(user) = user {
        chown(workshop.path(), Some(user.uid), Some(user.gid)).unwrap_or_else(|e| panic!("chown: {e}"));
        initdb.uid(user.uid).gid(user.gid);
    }
    let fresh = workshop.path().join("data");
    initdb.args([
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C",
        "--no-sync",
        "--wal-segsize=1",
    ]);
    run(initdb.arg("-D").arg(&fresh).current_dir(workshop.path()));
    if template.exists() {
        fs::remove_dir_all(template).unwrap_or_else(|e| panic!("cannot remove a broken template: {e}"));
    }
    // Renamed at the end, so that a directory with the final name is always complete.
    let beside = template.with_extension("new");
    run(Command::new("rm").arg("-rf").arg(&beside));
    run(Command::new("cp").arg("-a").arg(&fresh).arg(&beside));
    fs::rename(&beside, template).unwrap_or_else(|e| panic!("cannot keep the template: {e}"));
}

/// `target/tmp` of the build that runs this test, or the system's folder for temporary files.
pub(crate) fn cache_folder() -> PathBuf {
    let test = std::env::current_exe().unwrap_or_default();
    let target = test.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    let folder = target.map_or_else(std::env::temp_dir, |target| target.join("tmp"));
    fs::create_dir_all(&folder).unwrap_or_else(|e| panic!("cannot make {}: {e}", folder.display()));
    folder
}

/// Runs a program to its end.
pub(super) fn run(command: &mut Command) -> Output {
    let output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|e| panic!("cannot run {}: {e}", command.get_program().display()));
    let program = command.get_program().display();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} ended with {}: {said}", output.status);
    output
}

/// `None` when the test itself is not root.
pub(super) fn server_user() -> Option<ServerUser> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let line = users
        .lines()
        .find(|line| line.starts_with("postgres:"))
        .unwrap_or_else(|| panic!("PostgreSQL does not run as root, and there is no user `postgres`"));
    let mut fields = line.split(':').skip(2).map_while(|field| field.parse().ok());
    match (fields.next(), fields.next()) {
        (Some(uid), Some(gid)) => Some(ServerUser { uid, gid }),
        _ => panic!("cannot read the entry of user `postgres`: {line}"),
    }
}

/// The path of a program of PostgreSQL: the newest version in Debian's layout, or PATH.
pub fn program(name: &str) -> PathBuf {
    let mut versions: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|entries| entries.flatten().map(|entry| entry.path()).collect())
        .unwrap_or_default();
    let version = |path: &Path| path.file_name().and_then(|v| v.to_str()?.parse::<u32>().ok()).unwrap_or(0);
    versions.sort_by_key(|path| std::cmp::Reverse(version(path)));
    let path = std::env::var_os("PATH").unwrap_or_default();
    versions
        .into_iter()
        .map(|version| version.join("bin"))
        .chain(std::env::split_paths(&path))
        .map(|folder| folder.join(name))
        .find(|program| program.is_file())
        .unwrap_or_else(|| {
            panic!("`{name}` was not found: install PostgreSQL's server (Debian: apt-get install postgresql)")
        })
}
