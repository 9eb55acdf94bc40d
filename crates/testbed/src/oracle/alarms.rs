//! Invariants of the alarms: a process that loses a run or a lock, and is alive, logs it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{History, Judgement, locks};

/// The longest time from an event to the log line about it, including a freeze of the process.
const PATIENCE: Duration = Duration::from_secs(15);

/// The longest time that a client waits for one answer of the lock's server.
const ANSWER: Duration = Duration::from_millis(500);

/// If a run was taken over while its owner was alive, the owner has logged that its result does not count.
pub(super) fn lost_runs_are_told(history: &History, judgement: &mut Judgement) {
    let started: BTreeSet<i64> = history.starts().map(|start| start.fence).collect();
    let attempts = history.attempts.iter().filter(|attempt| attempt.reason == "owner_lost");
    for attempt in attempts.filter(|attempt| started.contains(&attempt.fence)) {
        let Some(process) = history.witness.process(&attempt.owner) else { continue };
        let name = format!("fence={}", attempt.fence);
        let told = process.alarms.iter().any(|line| holds_word(line, &name));
        if !told && process.could_speak_after(attempt.ended_at, PATIENCE) {
            let killed_at = process.killed_at;
            judgement
                .breach("lost runs are told", format_args!("{attempt:?} (owner killed at {killed_at:?})"));
        }
    }
}

/// If a lock was gone when its holder released it, the holder has logged that.
pub(super) fn missed_releases_are_told(history: &History, judgement: &mut Judgement) {
    for missed in locks::missed_releases(&history.witness) {
        let Some(process) = history.witness.process_of_token(&missed.token) else { continue };
        // If the answer to the acquisition was lost or came too late, the process did not know that it had the lock.
        let heard = !process.was_cut(missed.taken_at, missed.at)
            && !process.was_frozen(missed.taken_at, missed.taken_at + ANSWER);
        let told = process.alarms.iter().any(|line| line.contains(&missed.token));
        if heard && !told && process.could_speak_after(missed.at, PATIENCE) {
            judgement.breach("missed releases are told", format_args!("{missed:?}"));
        }
    }
}

/// Runs that another replica ended because their owner was gone, as far as a later attempt shows it.
pub(super) fn takeovers(history: &History) -> usize {
    let again = history.attempts.iter().filter(|attempt| attempt.reason == "owner_lost").count();
    let given_up = history.rows.iter().filter(|row| matches!(&*row.reason, "owner_lost" | "crash_loop"));
    let late = history
        .witness
        .changes
        .iter()
        .filter(|change| change.from.as_deref() == Some("lost") && change.to.as_deref() != Some("lost"));
    again + given_up.count() + late.count()
}

/// Whether one of the words of `line` is exactly this.
fn holds_word(line: &str, word: &str) -> bool {
    line.split(|c: char| c.is_whitespace() || matches!(c, '{' | '}' | ',')).any(|part| part == word)
}

#[cfg(test)]
mod planted;
