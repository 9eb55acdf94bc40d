//! Each condition of the scripts, taken out: a test must notice.

use std::path::Path;

use testbed::{Cut, Mutant, assert_every_mutant_is_caught, assert_lists};

/// A condition of a script: what it is, what breaks without it, the rule that fails; the text, and what comes in
/// its place.
struct Condition {
    words: &'static str,
    without: &'static str,
    test: &'static str,
    script: &'static str,
    cut: (&'static str, &'static str),
}

const CONDITIONS: &[Condition] = &[
    Condition {
        words: "a token that has the lock already is told so",
        without: "an acquisition whose reply was lost waits for itself",
        test: "the_same_token_acquires_again_without_moving_the_expiry",
        script: "acquire",
        cut: ("holder == ARGV[1]", "holder == ''"),
    },
    Condition {
        words: "… whatever has been done",
        without: "an acquisition whose reply was lost is told that there is nothing to do, and keeps the lock",
        test: "a_repeated_token_is_acquired_even_when_the_work_is_done",
        script: "acquire",
        cut: ("holder == ARGV[1]", "holder == ''"),
    },
    Condition {
        words: "a lock that is held is not taken (`NX`)",
        without: "two replicas hold it",
        test: "one_of_many_gets_the_lock",
        script: "acquire",
        cut: ("'NX', ", ""),
    },
    Condition {
        words: "a lock is set together with its expiry (`PX`)",
        without: "the lock of a replica that died is held for ever",
        test: "a_lock_is_taken_together_with_its_expiry",
        script: "acquire",
        cut: (", 'PX', ARGV[2]", ""),
    },
    Condition {
        words: "a subject that is done is not done again",
        without: "a late replica takes the lock for what is over",
        test: "a_done_marker_answers_late_comers_for_its_subject_until_it_expires",
        script: "acquire",
        cut: ("if ARGV[3] ~= '' and redis.call('GET', KEYS[2]) == ARGV[3] then", "if false then"),
    },
    Condition {
        words: "… for those who asked",
        without: "without a marker nobody can take the lock, whatever they want",
        test: "a_done_marker_answers_late_comers_for_its_subject_until_it_expires",
        script: "acquire",
        cut: ("ARGV[3] ~= '' and redis.call('GET', KEYS[2]) == ARGV[3]", "redis.call('GET', KEYS[2])"),
    },
    Condition {
        words: "… and of that subject only",
        without: "the next firing is taken for the last one",
        test: "a_done_marker_answers_late_comers_for_its_subject_until_it_expires",
        script: "acquire",
        cut: ("redis.call('GET', KEYS[2]) == ARGV[3]", "redis.call('GET', KEYS[2])"),
    },
    Condition {
        words: "only the owner's token renews",
        without: "a replica that lost the lock keeps it for a stranger, and goes on",
        test: "a_renewal_sets_its_own_lock_back_to_the_full_ttl_and_no_other",
        script: "renew",
        cut: ("redis.call('GET', KEYS[1]) ~= ARGV[1]", "false"),
    },
    Condition {
        words: "a renewal moves the expiry",
        without: "every lock ends after its first ttl, in the middle of the work",
        test: "a_renewal_sets_its_own_lock_back_to_the_full_ttl_and_no_other",
        script: "renew",
        cut: ("redis.call('PEXPIRE', KEYS[1], ARGV[2])", "1"),
    },
    Condition {
        words: "… and never sets the lock",
        without: "a lock that was lost comes back to life",
        test: "a_lost_lock_is_not_brought_back_by_renewal",
        script: "renew",
        cut: (
            "if redis.call('GET', KEYS[1]) ~= ARGV[1] then\n  return 0\nend\n\nreturn redis.call('PEXPIRE', KEYS[1], ARGV[2])",
            "return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2]) and 1",
        ),
    },
    Condition {
        words: "only the owner's token releases",
        without: "a replica that woke up deletes the lock of the next",
        test: "a_release_after_expiry_is_a_mismatch_and_spares_the_next_holder",
        script: "release",
        cut: ("redis.call('GET', KEYS[1]) ~= ARGV[1]", "false"),
    },
    Condition {
        words: "… and says so otherwise",
        without: "nobody learns that a lock was lost",
        test: "a_release_deletes_only_its_own_lock",
        script: "release",
        cut: ("return 0", "return 1"),
    },
    Condition {
        words: "a release deletes",
        without: "every lock is held for its whole ttl",
        test: "a_release_deletes_only_its_own_lock",
        script: "release",
        cut: ("redis.call('DEL', KEYS[1])", ""),
    },
    Condition {
        words: "a mismatched release leaves no marker",
        without: "a firing counts as done that another replica is at",
        test: "a_mismatched_release_leaves_no_done_marker",
        script: "release",
        cut: ("redis.call('GET', KEYS[1]) ~= ARGV[1]", "false"),
    },
    Condition {
        words: "a release without a subject leaves no marker",
        without: "every release leaves a key without a meaning, or fails",
        test: "a_release_deletes_only_its_own_lock",
        script: "release",
        cut: ("ARGV[2] ~= ''", "true"),
    },
    Condition {
        words: "a marker has an end",
        without: "Redis fills up with markers, one for each job, for ever",
        test: "a_done_marker_answers_late_comers_for_its_subject_until_it_expires",
        script: "release",
        cut: (", 'PX', ARGV[3]", ""),
    },
];

fn root() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn a_test_notices_when_a_condition_of_the_scripts_is_missing() {
    let mutant = |condition: &Condition| {
        let file = format!("crates/lockcore/src/lua/{}.lua", condition.script);
        let (text, put) = condition.cut;
        Mutant {
            cuts: vec![Cut { file, text, put }],
            test: format!("conformance::redis::{}", condition.test),
        }
    };
    let mutants: Vec<_> = CONDITIONS.iter().map(mutant).collect();
    assert_every_mutant_is_caught(&root(), &mutants, None);
}

#[test]
fn the_page_lists_every_condition_of_the_scripts() {
    let rows = CONDITIONS.iter().map(|condition| {
        let Condition { words, without, test, script, .. } = condition;
        let test = format!("`crates/lockcore/tests/lockcore/conformance/rules.rs::{test}`");
        format!("| {words} | {script} | {without} | {test} |")
    });
    assert_lists(&root().join("docs/mutants.md"), "| condition of a script |", &rows.collect::<Vec<_>>());
}
