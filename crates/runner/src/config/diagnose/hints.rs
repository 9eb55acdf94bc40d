//! What the reader of a problem probably meant.

use strsim::osa_distance;

/// The choice that `word` is nearest to, if it is near enough to be a misspelling of it.
pub(crate) fn nearest<'a>(word: &str, choices: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = plain(word);
    let allowed = (word.chars().count() / 3).clamp(1, 3);
    choices
        .into_iter()
        .map(|choice| (osa_distance(&word, &plain(choice)), choice))
        .filter(|(distance, choice)| *distance <= allowed && *distance < choice.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, choice)| choice)
}

/// The same without differences of case and of dashes, which are the commonest mistakes.
fn plain(word: &str) -> String {
    word.trim().to_lowercase().replace('-', "_")
}

/// Keys of other schedulers, in lower case and without dashes, and what to write here.
const FOREIGN_KEYS: &[(&str, &str)] = &[
    // Kubernetes CronJob
    ("concurrencypolicy", "overlap = \"skip\" (Forbid), \"allow\" (Allow) or \"replace\" (Replace)"),
    ("startingdeadlineseconds", "start_deadline, a duration with a unit such as \"10m\""),
    ("suspend", "enabled = false (suspend = true)"),
    ("backofflimit", "max_attempts, which counts the first attempt too"),
    ("activedeadlineseconds", "timeout, a duration with a unit such as \"1m\""),
    ("terminationgraceperiodseconds", "kill_grace, a duration with a unit such as \"5s\""),
    ("successfuljobshistorylimit", "ledger.retention, a duration and not a count"),
    ("failedjobshistorylimit", "ledger.retention, a duration and not a count"),
    ("completions", "shards"),
    ("parallelism", "shards"),
    // Quartz, Spring, ShedLock
    ("cronexpression", "schedule"),
    ("misfireinstruction", "misfire = \"latest\", \"all\" or \"skip\""),
    ("misfirethreshold", "start_deadline"),
    ("disallowconcurrentexecution", "overlap = \"skip\""),
    ("requestrecovery", "delivery = \"at_least_once\""),
    ("repeatinterval", "every, a duration with a unit such as \"30s\""),
    ("fixedrate", "every, a duration with a unit such as \"30s\""),
    ("fixeddelay", "every; it follows the clock, not the end of a run"),
    ("jobclass", "kind"),
    ("jobdata", "params"),
    ("lockatmostfor", "ttl"),
    ("lockatleastfor", "nothing: the ledger keeps each firing, so no lock has to be held after a run"),
    // Celery, sidekiq, APScheduler, systemd and others
    ("cron", "schedule"),
    ("crontab", "schedule"),
    ("interval", "every, a duration with a unit such as \"30s\""),
    ("period", "every, a duration with a unit such as \"30s\""),
    ("oncalendar", "schedule, as a cron expression"),
    ("randomizeddelaysec", "jitter, a duration with a unit such as \"30s\""),
    ("persistent", "misfire = \"latest\""),
    ("coalesce", "misfire = \"latest\""),
    ("misfiregracetime", "start_deadline, a duration with a unit such as \"10m\""),
    ("maxinstances", "overlap = \"skip\" (one at a time) or \"allow\""),
    ("retries", "max_attempts, which counts the first attempt too"),
    ("maxretries", "max_attempts, which counts the first attempt too"),
    ("retry", "max_attempts, which counts the first attempt too"),
    ("retrydelay", "backoff = { initial = \"1s\" }"),
    ("tz", "timezone"),
    ("zone", "timezone"),
    ("name", "the name in the header of the table: [jobs.NAME]"),
    ("disabled", "enabled = false"),
    ("type", "kind"),
    ("args", "params"),
    ("command", "kind = \"command\" and params = { argv = [\"/path/to/program\"] }"),
    ("argv", "params = { argv = [\"/path/to/program\"] }"),
    ("deadline", "timeout (of a run) or start_deadline (of a late start)"),
    ("lease", "ttl"),
    ("lockttl", "ttl"),
];

/// Sections of other tools, and ours.
const FOREIGN_SECTIONS: &[(&str, &str)] = &[
    ("redis", "lock"),
    ("database", "ledger"),
    ("db", "ledger"),
    ("postgres", "ledger"),
    ("postgresql", "ledger"),
    ("sqlite", "ledger"),
    ("http", "admin"),
    ("server", "admin"),
    ("logging", "log"),
    ("default", "defaults"),
    ("job", "jobs"),
    ("tasks", "jobs"),
    ("cron", "jobs"),
];

/// Words of other schedulers for a choice, and ours.
const FOREIGN_WORDS: &[(&str, &str)] = &[
    ("forbid", "skip"),
    ("fire_once_now", "latest"),
    ("run_once", "latest"),
    ("last", "latest"),
    ("once", "latest"),
    ("do_nothing", "skip"),
    ("ignore", "all"),
    ("parallel", "allow"),
    ("wait", "queue"),
    ("cancel", "replace"),
    ("redis", "lock"),
    ("database", "ledger"),
    ("fail", "skip"),
    ("warning", "warn"),
    ("pretty", "text"),
];

/// What to write instead of a key that another scheduler has.
pub(crate) fn foreign_key(key: &str) -> Option<&'static str> {
    look_up(FOREIGN_KEYS, &plain(key).replace('_', ""))
}

/// Our section for a section of another tool.
pub(crate) fn foreign_section(section: &str) -> Option<&'static str> {
    look_up(FOREIGN_SECTIONS, &plain(section))
}

/// Our word for a choice of another scheduler, if it is one of `known`.
pub(crate) fn foreign_word(word: &str, known: &[&str]) -> Option<&'static str> {
    look_up(FOREIGN_WORDS, &plain(word)).filter(|ours| known.contains(ours))
}

fn look_up(words: &[(&str, &'static str)], word: &str) -> Option<&'static str> {
    words.iter().find(|(theirs, _)| *theirs == word).map(|(_, ours)| *ours)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelling_is_recognised_and_another_word_is_not() {
        let keys = ["schedule", "timeout", "timezone", "ttl", "every"];
        assert_eq!(nearest("shedule", keys), Some("schedule"));
        assert_eq!(nearest("scheduel", keys), Some("schedule"));
        assert_eq!(nearest("time-out", keys), Some("timeout"));
        assert_eq!(nearest("TTL", keys), Some("ttl"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest("x", keys), None);
    }

    #[test]
    fn swapped_neighbours_are_one_mistake() {
        // Two changed letters would be too many for a word of five.
        assert_eq!(nearest("evrey", ["every"]), Some("every"));
        assert_eq!(nearest("evxxy", ["every"]), None);
    }

    #[test]
    fn other_schedulers_words_are_known_in_any_case() {
        assert!(foreign_key("concurrencyPolicy").is_some_and(|hint| hint.starts_with("overlap")));
        assert!(
            foreign_key("starting_deadline_seconds").is_some_and(|hint| hint.starts_with("start_deadline"))
        );
        assert_eq!(foreign_word("Forbid", &["skip", "queue"]), Some("skip"));
        assert_eq!(foreign_word("Forbid", &["latest"]), None);
    }
}
