//! The ledger's protocol, every interleaving of it within bounds: nobody trusts the lock, the clocks
//! or the network, and the promises hold. docs/protocol.md says what is covered and what is not.

mod conditions;
mod corridor;
mod ledger;
mod properties;
mod record;
mod setting;
mod world;

use std::collections::BTreeSet;

use stateright::{Checker, HasDiscoveries, Model};

use conditions::{Condition, NEEDED, Needed};
use setting::{SETTINGS, Setting};

fn setting(name: &str) -> Setting {
    SETTINGS
        .iter()
        .find(|setting| setting.name == name)
        .unwrap_or_else(|| panic!("no setting {name:?}"))
        .clone()
}

/// Explores all of a setting. No promise is broken, and everything that it is to show is seen.
fn holds(setting: Setting) {
    let name = setting.name;
    let shows: BTreeSet<_> = setting.shows.iter().copied().collect();
    let checker = setting.checker().spawn_bfs().join();
    println!("{name}: {} states, {} steps deep", checker.unique_state_count(), checker.max_depth());
    let mut found = checker.discoveries();
    for shown in shows {
        assert!(found.remove(shown).is_some(), "{name}: it never happens that {shown}");
    }
    if let Some((broken, path)) = found.into_iter().next() {
        panic!("{name}: broken: {broken}\n{:#?}", path.into_actions());
    }
}

/// One test for each setting.
macro_rules! settings {
    ($($claim:ident: $name:literal)+) => {
        $(#[test]
        fn $claim() {
            holds(setting($name));
        })+

        #[test]
        fn every_setting_is_explored() {
            let explored = BTreeSet::from([$($name),+]);
            let all: BTreeSet<_> = SETTINGS.iter().map(|setting| setting.name).collect();
            assert_eq!(explored, all);
        }
    };
}

settings! {
    an_effect_in_the_ledgers_transaction_commits_once: "transaction"
    two_answers_lost_in_one_history_change_nothing: "unknowns"
    three_workers_on_one_firing_change_nothing: "three workers"
    every_start_of_an_external_effect_is_licensed: "external"
    an_at_most_once_firing_begins_once_and_may_report_late: "at most once"
    an_at_most_once_effect_commits_once: "at most once, transaction"
    a_cancel_stands_once_it_is_acknowledged: "cancel"
    a_firing_that_came_through_the_queue_is_no_different: "queue"
    what_retention_removed_stays_removed: "retention"
    a_pause_that_has_returned_lets_no_claim_through: "pause"
    pauses_prunes_and_claims_pass_one_gate: "gate"
    a_sweep_takes_a_run_only_as_it_was_seen: "sweeps"
    two_firings_of_an_exclusive_job_never_overlap: "overlap"
    two_firings_of_an_exclusive_job_do_not_overlap_after_takeovers_either: "overlap, long"
}

#[test]
fn every_condition_of_the_protocol_is_needed() {
    for Needed { condition, setting: name, breaks, .. } in NEEDED {
        let broken: BTreeSet<_> = breaks.iter().copied().collect();
        let mutant = setting(name).without(*condition).checker();
        let checker = mutant.finish_when(HasDiscoveries::AllOf(broken.clone())).spawn_bfs().join();
        let found = checker.discoveries();
        for promise in broken {
            let path = found.get(promise).unwrap_or_else(|| {
                panic!("without {condition:?}, {name} still holds: {promise}; what is it good for?")
            });
            println!("{condition:?}: not {promise}: {:?}", path.clone().into_actions());
        }
    }
}

/// Belt and braces: the other conditions of the sweep are enough. A lease is NULL when nothing runs.
#[test]
fn a_sweep_that_compares_fence_and_lease_need_not_look_at_the_state() {
    holds(setting("sweeps").without(Condition::StateOfSweep));
}

#[test]
fn the_page_lists_every_condition_and_what_breaks_without_it() {
    let page = include_str!("../../../docs/protocol.md");
    let table = page.lines().skip_while(|line| !line.starts_with("| condition, and its statement |")).skip(2);
    let listed: Vec<_> = table.take_while(|line| line.starts_with('|')).collect();
    let line = |needed: &Needed| format!("| {} | {} |", needed.words, needed.breaks.join("; "));
    let expected: Vec<_> = NEEDED.iter().map(line).collect();
    assert!(listed == expected, "the table ought to be\n{}\n", expected.join("\n"));
}
