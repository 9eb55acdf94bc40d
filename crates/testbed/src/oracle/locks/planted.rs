//! Changes of locks that must not happen. The check must find each of them.

use super::super::invariants::planted::{at, breaks, good};
use super::super::witness::{LockEvent, ReplicaProcess};
use super::*;

const TTL: Duration = Duration::from_secs(3);

fn event(millis: i64, token: &str, act: LockAct) -> LockEvent {
    let at = at(0) + chrono::TimeDelta::milliseconds(millis);
    LockEvent { server: 1, at, key: "{ns/job}:lock".into(), token: token.into(), act }
}

/// One holds its lock as long as allowed, one releases in time, one loses its lock and learns that.
fn watched() -> History {
    use LockAct::{Forgotten, LeftAlone, Released, Renewed, Taken};
    let mut history = good();
    let process = ReplicaProcess {
        instance: "a-1".into(),
        alarms: vec!["no longer ours a-1|s|3".into(), "fence=11 is void".into()],
        ..ReplicaProcess::default()
    };
    history.witness.processes = vec![process];
    history.witness.lock_terms = Some(LockTerms { ttl: TTL, max_renewals: 3 });
    history.witness.locks = vec![
        event(0, "", Forgotten),
        event(1_000, "a-1|s|1", Taken(TTL)),
        event(1_001, "a-1|s|1", LeftAlone),
        event(2_000, "a-1|s|1", Renewed(TTL)),
        event(3_000, "a-1|s|1", Renewed(TTL)),
        event(4_000, "a-1|s|1", Renewed(TTL)),
        event(7_000, "a-1|s|2", Taken(TTL)),
        event(8_000, "a-1|s|2", Released),
        event(8_001, "a-1|s|3", Taken(TTL)),
        event(8_500, "", Forgotten),
        event(9_000, "a-1|s|3", LeftAlone),
    ];
    history
}

#[track_caller]
fn watch_breaks(invariant: &str, spoil: impl FnOnce(&mut Witness)) {
    breaks(invariant, |history| {
        *history = watched();
        spoil(&mut history.witness);
    });
}

#[test]
fn a_good_watch_has_no_breach() {
    watched().judge().assert_clean();
}

#[test]
fn a_lock_deleted_by_another_than_its_holder_is_seen() {
    watch_breaks("no foreign delete", |seen| seen.locks[7].token = "a-1|s|1".into());
    // The lock has no holder: the holder has released it before, or the server has lost it.
    watch_breaks("no foreign delete", |seen| seen.locks.push(event(8_600, "a-1|s|3", LockAct::Released)));
    watch_breaks("no foreign delete", |seen| {
        seen.locks.insert(8, event(8_000, "a-1|s|2", LockAct::Released))
    });
}

#[test]
fn a_lock_renewed_by_another_than_its_holder_is_seen() {
    watch_breaks("no foreign renewal", |seen| seen.locks[3].token = "a-1|s|9".into());
    watch_breaks("no foreign renewal", |seen| {
        seen.locks.push(event(8_600, "a-1|s|3", LockAct::Renewed(TTL)))
    });
}

#[test]
fn after_a_gap_in_the_watch_there_is_no_breach() {
    let mut history = watched();
    let locks = &mut history.witness.locks;
    locks.push(event(9_500, "", LockAct::Unwatched));
    locks.push(event(9_600, "b-1|s|1", LockAct::Renewed(TTL)));
    locks.push(event(9_700, "b-1|s|1", LockAct::Released));
    history.judge().assert_clean();
}

#[test]
fn one_renewal_too_many_is_seen_unless_an_answer_may_have_been_lost() {
    let fourth = event(4_100, "a-1|s|1", LockAct::Renewed(Duration::from_millis(2_900)));
    watch_breaks("renewals stay below the cap", |seen| seen.locks.insert(6, fourth.clone()));
    let mut history = watched();
    history.witness.locks.insert(6, fourth);
    history.witness.processes[0].cut = vec![(at(3), at(4))];
    history.judge().assert_clean();
}

#[test]
fn a_lock_that_lives_too_long_is_seen_but_a_late_renewal_may_add_a_ttl() {
    let renewed = LockAct::Renewed(TTL + Duration::from_millis(101));
    watch_breaks("no lock outlives its longest life", |seen| seen.locks[5].act = renewed);
    let mut history = watched();
    history.witness.locks[5].act = renewed;
    history.witness.processes[0].frozen = vec![(at(3), at(4))];
    history.judge().assert_clean();
    watch_breaks("no lock outlives its longest life", |seen| {
        seen.processes[0].frozen = vec![(at(3), at(4))];
        seen.locks[5].act = LockAct::Renewed(TTL * 2 + Duration::from_millis(101));
    });
}
