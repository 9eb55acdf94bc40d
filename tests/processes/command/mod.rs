//! Commands and their wardens, with real processes.

#![expect(clippy::disallowed_methods, reason = "tests measure time and read the role they are given")]

mod stage;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use runner::internal::kinds::Command;
use runner::internal::warden::WardenProgram;
use runner::{Cause, Job as _, JobContext, JobError};
use rustix::process::Signal;
use testbed::test_name;
use tokio::task::JoinHandle;

use crate::program;
use stage::{
    PATIENCE, Victim, block_on, command, context, is_gone, now, outcome, output, parent, pid_in, role,
    script, signal, until, until_gone,
};

const SHORT: Duration = Duration::from_millis(300);

/// Writes the pids of a command that ignores SIGTERM and of its child that does too, then works for
/// longer than any test.
const STUBBORN: &str = r#"
    trap "" TERM
    sleep 1000 &
    echo $! > child.tmp && mv child.tmp child
    echo $$ > command.tmp && mv command.tmp command
    while :; do sleep 0.05; done
"#;

fn pids(dir: &Path) -> [i32; 2] {
    ["command", "child"].map(|name| until(|| pid_in(&dir.join(name))))
}

fn error(result: Result<(), JobError>) -> String {
    result.expect_err("the command must not succeed").to_string()
}

// What is kept of a run.

#[test]
fn output_of_both_streams_is_kept_in_the_order_it_was_printed() {
    let command = command(r#"argv = ["sh", "-c", "echo one; echo two >&2; echo three"]"#);
    assert_eq!(output(&command), "one\ntwo\nthree\n");
}

#[test]
fn output_that_is_not_utf8_is_kept_as_text() {
    let command = command(r"argv = ['printf', 'caf\351 \377\000 \342\202\254']");
    assert_eq!(output(&command), "caf\u{FFFD} \u{FFFD}\u{FFFD} €");
}

#[test]
fn a_command_that_prints_nothing_leaves_no_output() {
    assert_eq!(outcome(&command(r#"argv = ["true"]"#)).1, None);
}

#[test]
fn of_too_much_output_the_end_is_kept_and_memory_stays_small() {
    if role().is_some() {
        let before = peak_memory();
        let text = output(&command(
            r#"
            argv = ["sh", "-c", "head -c 64000000 /dev/zero | tr '\\0' x; echo; echo why it failed"]
            output_limit = "4KiB"
            "#,
        ));
        let grown = peak_memory() - before;
        assert!(text.starts_with("[63995919 bytes cut]\nxxx"), "{}", &text[..40]);
        assert!(text.ends_with("xxx\nwhy it failed\n"), "{}", &text[text.len() - 40..]);
        assert!(text.len() < 4_200, "{}", text.len());
        assert!(grown < 16 << 10, "grew by {grown} KiB");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = [("PATH", "/usr/bin:/bin")];
    Victim::start(test_name!(of_too_much_output_the_end_is_kept_and_memory_stays_small), dir.path(), &path)
        .succeed();
}

/// In KiB.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn the_exit_status_is_told_as_it_was() {
    for (script, words) in [
        ("exit 3", "exit status 3"),
        ("exit 127", "exit status 127"),
        ("exit 255", "exit status 255"),
        ("kill -9 $$", "killed by signal 9 (SIGKILL)"),
        ("kill -TERM $$", "killed by signal 15 (SIGTERM)"),
    ] {
        let (result, _) = outcome(&command(&format!("argv = ['sh', '-c', '{script}']")));
        let failure = result.unwrap_err();
        assert!(failure.is_retry(), "{script}");
        assert_eq!(failure.to_string(), words);
    }
}

// What it is handed.

#[test]
fn a_command_has_no_input() {
    assert_eq!(output(&command(r#"argv = ["sh", "-c", "cat; echo end"]"#)), "end\n");
}

#[test]
fn a_command_is_told_its_run_and_inherits_all_but_secrets_and_settings() {
    if role().is_some() {
        let command = command("argv = ['env']\nenv = { MODE = 'full', LANG = 'C' }");
        let mut lines: Vec<String> = output(&command).lines().map(str::to_owned).collect();
        lines.retain(|line| !line.starts_with("TEST_ROLE_DIR="));
        lines.sort();
        let expected = [
            "HOME=/nowhere",
            "LANG=C",
            "MODE=full",
            "PATH=/usr/bin:/bin",
            "RUNNER_ATTEMPT=2",
            "RUNNER_CONFIG=jobs.toml",
            "RUNNER_FENCE=41",
            "RUNNER_IDEMPOTENCY_KEY=tests/reconcile/2026-03-29T01:00:00Z/3",
            "RUNNER_JOB=reconcile",
            "RUNNER_ORIGIN=catch_up",
            "RUNNER_SCHEDULED_AT=2026-03-29T01:00:00Z",
            "RUNNER_SHARD=3",
            "RUNNER_SHARDS=8",
        ];
        assert_eq!(lines, expected);
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let env = [
        ("PATH", "/usr/bin:/bin"),
        ("HOME", "/nowhere"),
        ("LANG", "de_DE"),
        ("RUNNER_CONFIG", "jobs.toml"),
        ("RUNNER_JOB", "of an outer run"),
        ("RUNNER__LOCK__URL", "redis://:secret@host"),
        ("RUNNER__LEDGER__URL", "postgres://user:secret@host"),
        ("DATABASE_URL", "postgres://user:secret@host"),
    ];
    let name = test_name!(a_command_is_told_its_run_and_inherits_all_but_secrets_and_settings);
    Victim::start(name, dir.path(), &env).succeed();
}

#[test]
fn a_secret_that_the_job_names_itself_is_handed_over() {
    let params = "argv = ['sh', '-c', 'echo $DATABASE_URL']\nenv = { DATABASE_URL = 'for this job' }";
    assert_eq!(output(&command(params)), "for this job\n");
}

#[test]
fn a_command_works_in_its_cwd_where_relative_programs_are_found_too() {
    let dir = tempfile::tempdir().unwrap();
    let here = dir.path().canonicalize().unwrap();
    executable(&here.join("tool"), "#!/bin/sh\npwd\n");
    let command = command(&format!("argv = ['./tool']\ncwd = '{}'", here.display()));
    assert_eq!(output(&command), format!("{}\n", here.display()));
}

#[test]
fn a_command_has_a_process_group_and_a_session_away_from_the_terminals() {
    // Fields 5 and 6 of the shell's own line; the shell leads its group, its warden the session.
    let ids = output(&command(r#"argv = ["sh", "-c", "cut -d' ' -f5,6 /proc/$$/stat; echo $$ $PPID"]"#));
    let lines: Vec<&str> = ids.lines().collect();
    assert_eq!(lines[0], lines[1]);
}

// What cannot be started.

fn executable(path: &Path, content: &str) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn what_cannot_be_started_fails_for_good_and_says_why() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("plain"), "#!/bin/sh\n").unwrap();
    executable(&dir.path().join("orphan"), "#!/no/such/interpreter\n");
    executable(&dir.path().join("rubbish"), "\x01\x02\x03 no program");
    let cwd = dir.path().display();
    for (params, words) in [
        (
            "argv = ['no-such-program-anywhere']".into(),
            "cannot run \"no-such-program-anywhere\": no such program in PATH",
        ),
        ("argv = ['/no/such/program']".into(), "cannot run \"/no/such/program\": no such file"),
        ("argv = ['/etc']".into(), "cannot run \"/etc\": it is a directory"),
        (
            format!("argv = ['./plain']\ncwd = '{cwd}'"),
            "cannot run \"./plain\": it is not executable, or not for this user",
        ),
        (
            format!("argv = ['./orphan']\ncwd = '{cwd}'"),
            "cannot run \"./orphan\": the interpreter that it names does not exist",
        ),
        (
            format!("argv = ['./rubbish']\ncwd = '{cwd}'"),
            "cannot run \"./rubbish\": it is neither a program for this machine nor",
        ),
        (
            "argv = ['true']\ncwd = '/no/such/place'".into(),
            "cannot work in cwd \"/no/such/place\": no such directory",
        ),
        (format!("argv = ['true']\ncwd = '{cwd}/plain'"), "it is not a directory"),
    ] {
        let (result, output) = outcome(&command(&params));
        let failure = result.unwrap_err();
        assert!(!failure.is_retry(), "{params}: {failure}");
        assert!(failure.to_string().contains(words), "{params}: {failure}");
        assert_eq!(output, None, "{params}");
    }
}

#[test]
fn a_runner_that_cannot_start_a_warden_says_so_and_may_try_again() {
    let params = toml::from_str("argv = ['true']").unwrap();
    let command = Command::new(params, [""; 0]).with_warden(WardenProgram::at("/no/such/runner"));
    let failure = outcome(&command).0.unwrap_err();
    assert!(failure.is_retry());
    assert!(failure.to_string().starts_with("cannot start the command's warden: "), "{failure}");
}

#[test]
fn a_run_that_was_stopped_or_lost_its_licence_before_its_start_is_not_started() {
    let dir = tempfile::tempdir().unwrap();
    let command = script(dir.path(), "touch started");
    block_on(async {
        let (stopped, levers) = context(PATIENCE, SHORT);
        levers.cancel.cancel(Cause::Drain);
        let failure = command.run(&stopped).await.unwrap_err();
        assert!(failure.is_retry() && failure.to_string().contains("before the command was started"));
        let (late, _levers) = context(Duration::ZERO, SHORT);
        let failure = command.run(&late).await.unwrap_err();
        assert!(failure.is_retry() && failure.to_string().contains("licence ended before"), "{failure}");
    });
    assert!(!dir.path().join("started").exists());
}

// How it is stopped.

/// Starts a run that outlives the call; aborting the handle drops it.
fn start(command: Command, context: &Arc<JobContext>) -> JoinHandle<Result<(), JobError>> {
    let context = context.clone();
    tokio::spawn(async move { command.run(&context).await })
}

#[test]
fn a_cancelled_command_is_asked_with_sigterm_and_may_end_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let polite = "trap 'echo tidied up; exit 0' TERM; echo $$ > pid; while :; do sleep 0.02; done";
    block_on(async {
        let (context, levers) = context(PATIENCE, PATIENCE);
        let context = Arc::new(context);
        let run = start(script(dir.path(), polite), &context);
        let pid = until(|| pid_in(&dir.path().join("pid")));
        levers.cancel.cancel(Cause::Timeout);
        let result = run.await.unwrap();
        assert!(result.is_ok(), "{result:?}");
        // The shell may have a word on the `sleep` that was asked to end as well.
        assert!(context.output().unwrap().ends_with("tidied up\n"));
        assert!(is_gone(pid));
    });
}

#[test]
fn a_command_that_ignores_sigterm_is_killed_after_its_grace_with_all_of_its_group() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let (context, levers) = context(PATIENCE, SHORT);
        let context = Arc::new(context);
        let run = start(script(dir.path(), STUBBORN), &context);
        let pids = pids(dir.path());
        let asked = Instant::now();
        levers.cancel.cancel(Cause::CancelRequested);
        assert_eq!(error(run.await.unwrap()), "killed by signal 9 (SIGKILL)");
        assert!(asked.elapsed() >= SHORT, "{:?}", asked.elapsed());
        assert!(pids.into_iter().all(is_gone));
    });
}

#[test]
fn a_run_that_is_dropped_ends_its_command() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let (context, _levers) = context(PATIENCE, SHORT);
        let context = Arc::new(context);
        // More than fits into the pipe: when the pids are there, the runner has read some of it.
        let stubborn = format!("head -c 200000 /dev/zero | tr '\\0' x\n{STUBBORN}");
        let run = start(script(dir.path(), &stubborn), &context);
        let pids = pids(dir.path());
        run.abort();
        assert!(run.await.unwrap_err().is_cancelled());
        until_gone(&pids);
        assert!(context.output().unwrap().ends_with("xxx"));
    });
}

#[test]
fn heartbeats_keep_a_command_alive_past_its_first_licence() {
    let licence = Duration::from_millis(1500);
    let command = command(r#"argv = ["sh", "-c", "sleep 3; echo done"]"#);
    block_on(async {
        let (context, levers) = context(licence, SHORT);
        let keeper = async {
            let mut beat = tokio::time::interval(licence / 15);
            loop {
                beat.tick().await;
                levers.licence.send_replace(now() + licence);
            }
        };
        let result = tokio::select! {
            result = command.run(&context) => result,
            () = keeper => unreachable!(),
        };
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(context.output().unwrap(), "done\n");
    });
}

#[test]
fn a_command_without_heartbeats_ends_with_its_licence() {
    let dir = tempfile::tempdir().unwrap();
    let licence = Duration::from_millis(1500);
    block_on(async {
        let (context, _levers) = context(licence, SHORT);
        let from = Instant::now();
        let result = script(dir.path(), STUBBORN).run(&context).await;
        let took = from.elapsed();
        assert!(took >= licence + SHORT, "{took:?}");
        let words = "the runner did not renew the run's leases in time, so the warden ended the command (killed by signal 9 (SIGKILL))";
        assert_eq!(error(result), words);
        assert!(pids(dir.path()).into_iter().all(is_gone));
    });
}

// What becomes of grandchildren.

#[test]
fn what_a_command_leaves_behind_is_ended_though_it_holds_the_pipe() {
    for (left_behind, kind) in [
        ("sleep 1000 &", "a background job"),
        ("(trap '' TERM; exec sleep 1000) &", "one that ignores SIGTERM"),
        ("setsid sleep 1000 &", "a daemon"),
        (r#"setsid sh -c 'trap "" TERM; exec sleep 1000' &"#, "a daemon that ignores SIGTERM"),
        (
            "setsid sh -c 'sleep 1000 & echo $! > pid.tmp; mv pid.tmp pid' &",
            "the child of a daemon that is gone",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let script = script(
            dir.path(),
            &format!(
                r#"{left_behind}
                case "{kind}" in *child*) ;; *) echo $! > pid.tmp; mv pid.tmp pid ;; esac
                while ! [ -e pid ]; do sleep 0.01; done
                echo finished"#
            ),
        );
        let from = Instant::now();
        assert_eq!(output(&script), "finished\n", "{kind}");
        assert!(from.elapsed() < PATIENCE / 2, "{kind}: that long only the licence lasts");
        assert!(is_gone(pid_in(&dir.path().join("pid")).unwrap()), "{kind}");
    }
}

#[test]
fn what_a_command_leaves_behind_may_print_its_last_lines() {
    let command = command(r#"argv = ["sh", "-c", "(sleep 0.02; echo late) & echo early"]"#);
    assert_eq!(output(&command), "early\nlate\n");
}

// What the warden survives, and what survives the warden.

#[test]
fn signals_that_are_sent_to_every_process_of_a_name_do_not_end_a_warden() {
    let script = "for s in TERM INT HUP QUIT; do kill -$s $PPID; done; sleep 0.1; echo fine";
    assert_eq!(output(&command(&format!("argv = ['sh', '-c', '{script}']"))), "fine\n");
}

#[test]
fn when_its_warden_is_killed_the_runner_kills_the_command() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let (context, _levers) = context(PATIENCE, PATIENCE);
        let run = start(script(dir.path(), STUBBORN), &Arc::new(context));
        let pids = pids(dir.path());
        signal(parent(pids[0]), Signal::KILL);
        let failure = run.await.unwrap().unwrap_err();
        assert!(failure.is_retry());
        let words =
            "the command's warden ended unexpectedly (signal: 9 (SIGKILL)), so the command was killed";
        assert_eq!(failure.to_string(), words);
        assert!(pids.into_iter().all(is_gone));
    });
}

/// Plays the runner: runs the stubborn command, whose licence nobody moves, and writes how it ended.
fn play_runner(dir: &Path, licence: Duration) {
    let result = block_on(async {
        let (context, _levers) = context(licence, SHORT);
        script(dir, STUBBORN).run(&context).await
    });
    fs::write(dir.join("result.tmp"), error(result)).unwrap();
    fs::rename(dir.join("result.tmp"), dir.join("result")).unwrap();
}

const PATH: [(&str, &str); 1] = [("PATH", "/usr/bin:/bin")];

#[test]
fn a_runner_that_is_killed_takes_its_command_along() {
    if let Some(dir) = role() {
        return play_runner(&dir, PATIENCE * 10);
    }
    let dir = tempfile::tempdir().unwrap();
    let victim =
        Victim::start(test_name!(a_runner_that_is_killed_takes_its_command_along), dir.path(), &PATH);
    let pids = pids(dir.path());
    victim.signal(Signal::KILL);
    until_gone(&pids);
}

#[test]
fn a_runner_that_is_frozen_past_its_licence_loses_its_command_and_knows_it() {
    let licence = Duration::from_secs(2);
    if let Some(dir) = role() {
        return play_runner(&dir, licence);
    }
    let dir = tempfile::tempdir().unwrap();
    let name = test_name!(a_runner_that_is_frozen_past_its_licence_loses_its_command_and_knows_it);
    let victim = Victim::start(name, dir.path(), &PATH);
    let pids = pids(dir.path());
    victim.signal(Signal::STOP);
    until_gone(&pids);
    assert!(!dir.path().join("result").exists(), "it was frozen");
    victim.signal(Signal::CONT);
    let result = until(|| fs::read_to_string(dir.path().join("result")));
    assert!(result.starts_with("the runner did not renew the run's leases"), "{result}");
    victim.succeed();
}

#[test]
fn a_hundred_commands_at_once_leave_no_zombie_and_no_descriptor_behind() {
    if role().is_some() {
        return block_on(a_hundred_at_once());
    }
    let dir = tempfile::tempdir().unwrap();
    let name = test_name!(a_hundred_commands_at_once_leave_no_zombie_and_no_descriptor_behind);
    Victim::start(name, dir.path(), &PATH).succeed();
}

async fn a_hundred_at_once() {
    let one = || async {
        let (context, _levers) = context(PATIENCE, PATIENCE);
        let result = command(r#"argv = ["sh", "-c", "sleep 0.1 & echo $RUNNER_JOB"]"#).run(&context).await;
        assert!(result.is_ok(), "{result:?}");
        assert_eq!(context.output().unwrap(), "reconcile\n");
    };
    one().await; // What the first run opens for all of them stays open.
    let before = descriptors();
    let mut runs = tokio::task::JoinSet::new();
    for _ in 0..100 {
        runs.spawn(one());
    }
    runs.join_all().await;
    assert_eq!(children(), "");
    assert_eq!(descriptors(), before);
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

fn children() -> String {
    let threads = fs::read_dir("/proc/self/task").unwrap();
    threads.map(|thread| fs::read_to_string(thread.unwrap().path().join("children")).unwrap()).collect()
}

#[test]
fn a_warden_that_is_started_by_hand_explains_itself() {
    let mut warden = std::process::Command::new(program())
        .arg("warden")
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut warden.stdin.take().unwrap(), b"hello\n").unwrap();
    let output = warden.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let words = String::from_utf8(output.stderr).unwrap();
    assert!(words.starts_with("runner warden: ") && words.contains("only the runner starts this"), "{words}");
}
