//! Histories in which an alarm is missing. The check must find each of them.

use chrono::TimeDelta;

use super::super::invariants::planted::{at, breaks, good};
use super::super::witness::{LockAct, LockEvent, ReplicaProcess};
use super::super::{History, Witness};

const TTL: std::time::Duration = std::time::Duration::from_secs(3);

fn event(second: i64, token: &str, act: LockAct) -> LockEvent {
    LockEvent { server: 1, at: at(second), key: "k".into(), token: token.into(), act }
}

/// The run with fence 11 was taken over, and one lock was gone at its release. Both were logged.
fn told() -> History {
    let mut history = good();
    let alarms = vec!["WARN run{fence=11}: its result is void".into(), "no longer ours token=a-1|s|1".into()];
    let process = ReplicaProcess { instance: "a-1".into(), alarms, ..ReplicaProcess::default() };
    history.witness.processes = vec![process];
    history.witness.locks = vec![
        event(1, "a-1|s|1", LockAct::Taken(TTL)),
        event(2, "", LockAct::Forgotten),
        event(3, "a-1|s|1", LockAct::LeftAlone),
    ];
    history
}

#[track_caller]
fn silence_breaks(invariant: &str, spoil: impl FnOnce(&mut Witness)) {
    breaks(invariant, |history| {
        *history = told();
        spoil(&mut history.witness);
    });
}

#[track_caller]
fn is_clean(change: impl FnOnce(&mut Witness)) {
    let mut history = told();
    change(&mut history.witness);
    history.judge().assert_clean();
}

#[test]
fn alarms_that_were_raised_are_not_a_breach() {
    is_clean(|_| {});
}

#[test]
fn an_owner_that_lost_its_run_and_said_nothing_is_seen() {
    silence_breaks("lost runs are told", |seen| drop(seen.processes[0].alarms.remove(0)));
    // The alarm of another fence does not count.
    silence_breaks("lost runs are told", |seen| {
        seen.processes[0].alarms[0] = "WARN run{fence=111}: its result is void".into();
    });
}

#[test]
fn no_alarm_is_required_of_an_owner_that_was_killed() {
    is_clean(|seen| {
        seen.processes[0].alarms.clear();
        seen.processes[0].killed_at = Some(at(2));
    });
    silence_breaks("lost runs are told", |seen| {
        seen.processes[0].alarms.clear();
        seen.processes[0].killed_at = Some(at(2) + TimeDelta::seconds(60));
    });
}

#[test]
fn a_missing_alarm_about_a_lock_gone_at_its_release_is_seen() {
    silence_breaks("missed releases are told", |seen| drop(seen.processes[0].alarms.pop()));
    // A lock that has expired is gone, like one that the server has lost.
    silence_breaks("missed releases are told", |seen| {
        seen.processes[0].alarms.pop();
        seen.locks[1] = event(5, "a-1|s|1", LockAct::LeftAlone);
        seen.locks.pop();
    });
}

#[test]
fn no_alarm_is_required_for_a_release_sent_twice_or_never_answered() {
    is_clean(|seen| {
        seen.processes[0].alarms.pop();
        seen.processes[0].cut = vec![(at(3), at(4))];
    });
    is_clean(|seen| {
        seen.processes[0].alarms.pop();
        seen.locks[1] = event(2, "a-1|s|1", LockAct::Released);
    });
    // It was frozen when the answer to its acquisition came. If it was frozen later, it knew that it had the lock.
    let moment = at(1) + TimeDelta::milliseconds(400);
    is_clean(|seen| {
        seen.processes[0].alarms.pop();
        seen.processes[0].frozen = vec![(moment, at(3))];
    });
    silence_breaks("missed releases are told", |seen| {
        seen.processes[0].alarms.pop();
        seen.processes[0].frozen = vec![(moment + TimeDelta::milliseconds(101), at(3))];
    });
}
