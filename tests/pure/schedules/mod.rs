//! When jobs fire: the dialect of cron, the change of the clocks, and the same list on every replica.

mod clocks;

mod dialect;

mod reference;

mod properties;

use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use runner::internal::schedule::Timetable;

fn at(text: &str) -> DateTime<Utc> {
    text.parse().unwrap_or_else(|error| panic!("{text:?}: {error}"))
}

fn listed(instants: impl IntoIterator<Item = DateTime<Utc>>) -> Vec<String> {
    instants.into_iter().map(runner::internal::firing::instant).collect()
}

mod cases {
    //! Inputs that other schedulers got wrong, with the right values.

    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Case {
        name: String,
        expr: String,
        zone: String,
        after: Option<String>,
        until: Option<String>,
        count: Option<usize>,
        expect: Option<Expect>,
        /// It cannot be used, and the message says all of this.
        refused: Option<Vec<String>>,
        /// It can be used, with a warning that says this.
        warns: Option<String>,
        within_ms: Option<u64>,
    }

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Expect {
        All(Vec<String>),
        Ends { n: usize, first: Vec<String>, last: Vec<String> },
    }

    #[test]
    fn every_case_comes_out_right() {
        let mut wrong = Vec::new();
        let mut cases = 0;
        for line in include_str!("../../data/cron_cases.jsonl").lines() {
            let case: Case = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
            cases += 1;
            let started = elapsed();
            if let Err(problem) = judge(&case) {
                wrong.push(format!("{} ({:?} in {}): {problem}", case.name, case.expr, case.zone));
            }
            let took = started();
            if case.within_ms.is_some_and(|limit| took > Duration::from_millis(limit)) {
                wrong.push(format!("{}: took {took:?}", case.name));
            }
        }
        assert!(cases >= 60, "only {cases} cases were read");
        assert!(wrong.is_empty(), "{} of {cases} cases are wrong:\n{}", wrong.len(), wrong.join("\n"));
    }

    fn judge(case: &Case) -> Result<(), String> {
        let zone: Tz = case.zone.parse().expect("a zone");
        let timetable = match (Timetable::cron(&case.expr, zone, None), &case.refused) {
            (Err(error), Some(words)) => {
                return match words.iter().find(|word| !error.message.contains(*word)) {
                    Some(word) => Err(format!("the message does not say {word:?}: {error}")),
                    None => Ok(()),
                };
            }
            (Err(error), None) => return Err(error.to_string()),
            (Ok(_), Some(_)) => return Err("it was not refused".into()),
            (Ok(timetable), None) => timetable,
        };
        if let Some(word) = &case.warns
            && !timetable.warnings().iter().any(|warning| warning.contains(word))
        {
            return Err(format!("no warning says {word:?}: {:?}", timetable.warnings()));
        }
        let after = at(case.after.as_deref().expect("after"));
        let until = at(case.until.as_deref().expect("until"));
        let got = listed(timetable.between(after, until).take(case.count.unwrap_or(usize::MAX)));
        let right = match case.expect.as_ref().expect("expect") {
            Expect::All(all) => got == *all,
            Expect::Ends { n, first, last } => {
                got.len() == *n && got.starts_with(first) && got.ends_with(last)
            }
        };
        if right { Ok(()) } else { Err(format!("got {} instants: {got:?}", got.len())) }
    }

    /// Of this thread's own time: a busy machine must not fail the test.
    fn elapsed() -> impl Fn() -> Duration {
        let spent = || {
            let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
            Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
        };
        let start = spent();
        move || spent() - start
    }
}
