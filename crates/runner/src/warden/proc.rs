//! The processes of this machine, read from `/proc`.

use std::fs;
use std::io;

use rustix::process::{Pid, Signal, getpid, kill_process};

/// The children of this process, which must have only one thread. Dead children that were not reaped are
/// included.
pub(super) fn own_children() -> io::Result<Vec<Pid>> {
    match fs::read_to_string("/proc/thread-self/children") {
        Ok(list) => Ok(list.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()),
        // This kernel was built without that list.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let me = getpid();
            Ok(all()?.filter(|entry| entry.parent == Some(me)).map(|entry| entry.pid).collect())
        }
        Err(error) => Err(error),
    }
}

/// Kills every process in the session, and returns how many there were.
pub(super) fn kill_session(session: Pid) -> io::Result<usize> {
    let mut alive = 0;
    for entry in all()?.filter(|entry| entry.session == Some(session) && !entry.dead) {
        alive += 1;
        kill_process(entry.pid, Signal::KILL).ok();
    }
    Ok(alive)
}

struct ProcessEntry {
    pid: Pid,
    dead: bool,
    parent: Option<Pid>,
    session: Option<Pid>,
}

/// All processes that this user can see.
fn all() -> io::Result<impl Iterator<Item = ProcessEntry>> {
    // A process that ends meanwhile is skipped: its files cannot be read any more.
    Ok(fs::read_dir("/proc")?.filter_map(|dir| {
        let dir = dir.ok()?;
        let pid = Pid::from_raw(dir.file_name().to_str()?.parse().ok()?)?;
        entry(pid, &fs::read(dir.path().join("stat")).ok()?)
    }))
}

/// Reads `pid (name) state parent group session …`. The name may contain any character, also `)` and spaces.
fn entry(pid: Pid, stat: &[u8]) -> Option<ProcessEntry> {
    let name_ends = stat.iter().rposition(|byte| *byte == b')')?;
    let fields = std::str::from_utf8(&stat[name_ends + 1..]).ok()?;
    let fields: Vec<&str> = fields.split_whitespace().take(4).collect();
    let [state, parent, _group, session] = fields[..] else { return None };
    // A process that is being reaped has the session -1, which is not a valid `Pid`.
    let pid_of = |text: &str| Pid::from_raw(text.parse::<u32>().ok()?.try_into().ok()?);
    let dead = matches!(state, "Z" | "X");
    Some(ProcessEntry { pid, dead, parent: pid_of(parent), session: pid_of(session) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_whose_name_looks_like_fields_is_read_right() {
        let pid = Pid::from_raw(77).unwrap();
        let entry = entry(pid, b"77 (a) Z 1 (b) S 12 34 56 0 -1 4194304").unwrap();
        assert_eq!((entry.dead, entry.parent, entry.session), (false, Pid::from_raw(12), Pid::from_raw(56)));
    }

    #[test]
    fn a_process_that_is_being_reaped_has_no_parent_and_no_session() {
        let pid = Pid::from_raw(77).unwrap();
        let entry = entry(pid, b"77 (sh) X 0 -1 -1 0 -1 4194304").unwrap();
        assert_eq!((entry.dead, entry.parent, entry.session), (true, None, None));
    }

    #[test]
    fn this_process_is_among_all_processes() {
        let me = all().unwrap().find(|entry| entry.pid == getpid()).unwrap();
        assert_eq!((me.dead, me.parent), (false, rustix::process::getppid()));
    }
}
