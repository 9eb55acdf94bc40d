//! Invariants of the locks: only the holder deletes or renews a lock, and no lock lives too long.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, Utc};

use super::witness::{LockAct, LockEvent, LockTerms, Witness};
use super::{History, Judgement};

/// Allowed for the machine's delays between a client's decision and the server's time.
const SLACK: Duration = Duration::from_millis(100);

/// One hold of a lock, from its acquisition.
#[derive(Clone, Debug)]
struct Hold {
    token: String,
    taken_at: DateTime<Utc>,
    until: DateTime<Utc>,
    renewals: u32,
}

/// A release that found the lock gone or someone else's.
#[derive(Clone, Debug)]
pub(super) struct Missed {
    pub(super) token: String,
    pub(super) taken_at: DateTime<Utc>,
    pub(super) at: DateTime<Utc>,
}

/// What the events show.
#[derive(Debug, Default)]
struct Replay {
    holds: Vec<Hold>,
    missed: Vec<Missed>,
    foreign: Vec<(&'static str, String)>,
}

pub(super) fn no_foreign_delete(history: &History, judgement: &mut Judgement) {
    foreign(history, judgement, "no foreign delete");
}

pub(super) fn no_foreign_renewal(history: &History, judgement: &mut Judgement) {
    foreign(history, judgement, "no foreign renewal");
}

fn foreign(history: &History, judgement: &mut Judgement, invariant: &'static str) {
    let found = replay(&history.witness).foreign;
    for (_, what) in found.into_iter().filter(|(which, _)| *which == invariant) {
        judgement.breach(invariant, what);
    }
}

/// A renewal whose answer was lost is repeated, so only holds without lost messages are checked.
pub(super) fn renewals_stay_below_the_cap(history: &History, judgement: &mut Judgement) {
    let Some(terms) = history.witness.lock_terms else { return };
    for hold in replay(&history.witness).holds {
        if hold.renewals > terms.max_renewals && !disturbed(&history.witness, &hold) {
            judgement.breach("renewals stay below the cap", format_args!("{hold:?}"));
        }
    }
}

/// A request that was delayed can move the expiry later by the delay, at most by one ttl: after that the lock has
/// expired.
pub(super) fn no_lock_outlives_its_longest_life(history: &History, judgement: &mut Judgement) {
    let Some(terms) = history.witness.lock_terms else { return };
    for hold in replay(&history.witness).holds {
        let late = if disturbed(&history.witness, &hold) { terms.ttl } else { Duration::ZERO };
        if hold.until > hold.taken_at + longest(terms) + late {
            judgement.breach("no lock outlives its longest life", format_args!("{hold:?}"));
        }
    }
}

/// Releases that came too late. Their tokens had held the lock before.
pub(super) fn missed_releases(witness: &Witness) -> Vec<Missed> {
    replay(witness).missed
}

fn longest(terms: LockTerms) -> Duration {
    terms.longest_life() + SLACK
}

fn disturbed(witness: &Witness, hold: &Hold) -> bool {
    let Hold { taken_at, until, .. } = *hold;
    let process = witness.process_of_token(&hold.token);
    process.is_none_or(|process| process.was_cut(taken_at, until) || process.was_frozen(taken_at, until))
}

/// Which locks a server holds, as far as it is known.
#[derive(Debug, Default)]
struct Server {
    /// The newest hold of each key, as an index; `None` where the key is known to be free.
    holders: BTreeMap<String, Option<usize>>,
    /// Whether the keys that are not listed are known to be free.
    known: bool,
}

fn replay(witness: &Witness) -> Replay {
    let mut replay = Replay::default();
    let mut servers: BTreeMap<u16, Server> = BTreeMap::new();
    let mut released = BTreeSet::new();
    for (number, event) in witness.locks.iter().enumerate() {
        let server = servers.entry(event.server).or_default();
        let holder = server.holders.get(&event.key).copied();
        let index = holder.flatten();
        let own = index.is_some_and(|index| replay.holds[index].token == event.token);
        // A key without any event yet may have any holder.
        let foreign = !own && (holder.is_some() || server.known);
        let stranger = || {
            let holder = index.map_or("nobody", |index| &*replay.holds[index].token);
            let same = |other: &&LockEvent| {
                other.server == event.server && (other.key == event.key || other.key.is_empty())
            };
            let mut before: Vec<_> = witness.locks[..number].iter().rev().filter(same).take(6).collect();
            before.reverse();
            format!("{event:?} while {holder} held it, after {before:#?}")
        };
        match event.act {
            LockAct::Taken(ttl) => {
                server.holders.insert(event.key.clone(), Some(replay.holds.len()));
                let (token, taken_at) = (event.token.clone(), event.at);
                replay.holds.push(Hold { token, taken_at, until: taken_at + ttl, renewals: 0 });
            }
            LockAct::Renewed(_) if foreign => replay.foreign.push(("no foreign renewal", stranger())),
            LockAct::Renewed(ttl) => {
                if let Some(index) = index {
                    let hold = &mut replay.holds[index];
                    hold.renewals += 1;
                    hold.until = hold.until.max(event.at + ttl);
                }
            }
            LockAct::Released if foreign => replay.foreign.push(("no foreign delete", stranger())),
            LockAct::Released => {
                if let Some(index) = index {
                    replay.holds[index].until = event.at;
                }
                released.insert(event.token.clone());
                server.holders.insert(event.key.clone(), None);
            }
            LockAct::LeftAlone => {
                let had = replay.holds.iter().rfind(|hold| hold.token == event.token);
                // If the lock is still there, this was not a release but a second try of the acquisition.
                let gone = |hold: &&Hold| !own || hold.until <= event.at;
                if let Some(hold) = had.filter(gone).filter(|hold| !released.contains(&hold.token)) {
                    let (token, taken_at) = (event.token.clone(), hold.taken_at);
                    replay.missed.push(Missed { token, taken_at, at: event.at });
                }
            }
            LockAct::Forgotten => *server = Server { known: true, ..Server::default() },
            LockAct::Unwatched => *server = Server::default(),
        }
    }
    replay
}

#[cfg(test)]
mod planted;
