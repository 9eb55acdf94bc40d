//! How a replica goes: its locks at once, its servers silent or not, as the first process or not.

use std::path::Path;
use std::time::Duration;

use chrono::TimeDelta;
use rustix::process::Signal;
use testbed::rows::{instant, state};
use testbed::scene::{QUICK, SECOND, START, end, host_now, instance, owner};
use testbed::{Account, Deployment, Mode, Replica, Scene, let_pass};

use crate::{embedded, program};

#[test]
fn after_a_sigterm_the_lock_is_given_back_with_the_run_and_the_next_is_on_time() {
    let scene = Scene::new();
    // Nobody could wait for this ttl.
    let keys = "every = \"1s\"\ntimeout = \"20s\"";
    let deployment = scene.deployment(program()).ttl("60s").job("work", Duration::from_millis(600), keys);
    let mut replicas = deployment.start(2);
    let names: Vec<_> = replicas.iter().map(instance).collect();
    deployment.effects().wait_for_starts("work", 2, START);
    let leaver = owner(&replicas);
    let mut gone = replicas.swap_remove(leaver);
    let mark = gone.lines().mark();
    gone.terminate();
    let status = gone.wait_exit(Duration::from_secs(10));
    let left = host_now();
    assert!(status.success(), "{status:?}");
    let lock = format!("{{runner:{}/work}}:lock", deployment.namespace());
    let holder = scene.cluster.redis.call(&["GET", &lock]).unwrap_or_default();
    assert!(!holder.starts_with(&names[leaver]), "it left its lock behind: {holder}");
    let before = deployment.effects().instants("work").len();
    deployment.effects().wait_for_starts("work", before + 3, START);
    end(&mut replicas);
    // In order: nothing was closed before what needed it.
    let complaints: Vec<_> = gone
        .lines()
        .since(mark)
        .into_iter()
        .filter(|line| line.contains("WARN") || line.contains("ERROR") || line.contains("panicked"))
        .collect();
    assert_eq!(complaints, Vec::<String>::new());
    let account = Account::of(&deployment, "work", SECOND);
    account.assert_all_succeeded_at_once();
    account.assert_on_time(TimeDelta::seconds(1));
    let by_the_leaver = account.rows.iter().filter(|row| row["owner"] == names[leaver].as_str());
    let last = by_the_leaver.map(|row| instant(row, "finished_at")).max().unwrap();
    assert!(last <= left + TimeDelta::milliseconds(100), "{last} is after {left}");
}

#[test]
fn a_replica_leaves_within_its_grace_though_both_servers_have_fallen_silent() {
    let scene = Scene::new();
    let wire = scene.wire();
    let deployment = scene
        .deployment(program())
        .runner("shutdown_grace = \"1s\"")
        .job("quick", QUICK, "every = \"1s\"\nkill_grace = \"300ms\"")
        .job("long", Duration::from_secs(30), "every = \"2s\"\ntimeout = \"60s\"\nkill_grace = \"300ms\"");
    let mut running = wire.replica(&deployment).spawn();
    instance(&running);
    deployment.effects().wait_for_starts("long", 1, START);
    wire.postgres.set(Mode::Stall);
    wire.redis.set(Mode::Stall);
    let mut starting = wire.replica(&deployment).spawn();
    // Claims and heartbeats are under way, and will not be answered.
    let_pass(Duration::from_millis(1_200));
    let asked = host_now();
    running.terminate();
    // The grace, the longest kill_grace, and three seconds in which an answer might still come.
    assert!(running.wait_exit(Duration::from_secs(10)).success());
    let took = host_now() - asked;
    assert!(took < TimeDelta::seconds(7), "{took}");
    assert!(running.descendants().is_empty(), "it left a command behind");
    // One that has not been let in yet says what it waits for, and need not wait for it.
    starting.wait_for_line(START, |line| line.contains("waiting for the ledger"));
    starting.terminate();
    assert!(starting.wait_exit(Duration::from_secs(5)).success());
    // What could not be said is not taken for said.
    assert_eq!(state(&deployment.history("long")[0]), "running");
}

/// The first process of a container hears only signals that it has asked for: the kernel drops all
/// others, and the container would be killed after its patience.
#[test]
fn every_signal_that_ends_a_replica_is_asked_for_and_ends_an_idle_one_at_once() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        let deployment = embedded().job("rare", QUICK, "schedule = \"0 0 1 1 *\"");
        let mut replica = deployment.start(1).remove(0);
        instance(&replica);
        let status = std::fs::read_to_string(format!("/proc/{}/status", replica.pid())).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap();
        let caught = u64::from_str_radix(caught.trim(), 16).unwrap();
        assert!(caught & (1 << (signal.as_raw() - 1)) != 0, "{signal:?} is not among {caught:x}");
        replica.signal(signal);
        let asked = host_now();
        let status = replica.wait_exit(Duration::from_secs(10));
        assert_eq!(status.code(), Some(0), "{signal:?}");
        let took = host_now() - asked;
        assert!(took < TimeDelta::seconds(2), "{signal:?}: {took}");
    }
}

#[test]
fn no_signal_that_can_be_caught_ends_a_replica_in_the_middle_of_a_run() {
    for signal in [Signal::HUP, Signal::QUIT] {
        let (mut replica, deployment) = in_the_middle_of_a_run();
        replica.signal(signal);
        assert_eq!(replica.wait_exit(Duration::from_secs(10)).code(), Some(0), "{signal:?}");
        assert_eq!(state(&deployment.history("work")[0]), "succeeded", "{signal:?} did not let the run end");
    }
    let (mut replica, deployment) = in_the_middle_of_a_run();
    let others =
        [Signal::USR1, Signal::USR2, Signal::ALARM, Signal::VTALARM, Signal::PROF, Signal::IO, Signal::POWER];
    for signal in others {
        replica.signal(signal);
    }
    let begun = deployment.effects().all().len();
    deployment.effects().wait_for_starts("work", begun + 2, START);
    end(std::slice::from_mut(&mut replica));
}

#[test]
fn a_replica_under_nohup_outlives_its_terminal() {
    let deployment = embedded().job("work", QUICK, "every = \"1s\"");
    let nohup = Replica::builder(Path::new("nohup")).arg(program()).config(&deployment.config());
    let mut replica = nohup.cwd(deployment.dir()).spawn();
    instance(&replica);
    replica.signal(Signal::HUP);
    let begun = deployment.effects().all().len();
    deployment.effects().wait_for_starts("work", begun + 2, START);
    end(std::slice::from_mut(&mut replica));
}

/// A replica whose job has begun and takes another second.
fn in_the_middle_of_a_run() -> (Replica, Deployment) {
    let keys = "every = \"2s\"\ntimeout = \"20s\"";
    let deployment = embedded().job("work", Duration::from_secs(1), keys);
    let replica = deployment.start(1).remove(0);
    deployment.effects().wait_for_starts("work", 1, START);
    (replica, deployment)
}
