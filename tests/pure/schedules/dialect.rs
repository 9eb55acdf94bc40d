//! Which expressions are understood, how alike they are, and what is said about the others.

use chrono_tz::Tz;
use runner::internal::firing::JobName;
use runner::internal::schedule::Timetable;

use super::{at, listed};

fn cron(expr: &str) -> Timetable {
    Timetable::cron(expr, Tz::UTC, None).unwrap_or_else(|error| panic!("{expr:?}: {error}"))
}

fn refusal(expr: &str) -> String {
    match Timetable::cron(expr, Tz::UTC, Some(&job("nightly"))) {
        Ok(timetable) => panic!("{expr:?} was not refused: {timetable:?}"),
        Err(error) => error.to_string(),
    }
}

fn job(name: &str) -> JobName {
    JobName::new(name).unwrap()
}

#[test]
fn a_refusal_names_the_field_and_the_value_and_what_would_do() {
    let cases: &[(&str, &[&str])] = &[
        ("60 * * * *", &["minute field \"60\"", "out of range", "0 to 59"]),
        ("61 0 0 * * *", &["second field \"61\"", "0 to 59"]),
        ("0 24 * * *", &["hour field \"24\"", "0 to 23", "midnight is 0"]),
        ("0 0 0 * *", &["day-of-month field \"0\"", "1 to 31"]),
        ("0 0 32 * *", &["day-of-month field \"32\"", "L for the last day"]),
        ("0 0 1 0 *", &["month field \"0\"", "1 to 12 or JAN to DEC"]),
        ("0 0 1 13 *", &["month field \"13\"", "1 to 12"]),
        ("0 0 * * 8", &["weekday field \"8\"", "0 and 7 are Sunday"]),
        ("0 0 * * MO", &["weekday field \"MO\"", "\"MO\" is not a value", "SUN to SAT"]),
        ("0 0 * MON *", &["month field \"MON\"", "JAN to DEC"]),
        ("0 -5 * * *", &["hour field \"-5\"", "a number is missing"]),
        ("0 1.5 * * *", &["hour field \"1.5\"", "not a value"]),
        ("99999999999999999999 * * * *", &["minute field", "out of range"]),
        ("5-1 * * * *", &["minute field \"5-1\"", "backwards", "5-59,0-1"]),
        ("0 22-6 * * *", &["hour field \"22-6\"", "22-23,0-6"]),
        ("0 0 * * 5-0", &["weekday field \"5-0\"", "backwards", "5-7"]),
        ("0 0 * * FRI-MON", &["weekday field \"FRI-MON\"", "backwards"]),
        ("0 0 * NOV-FEB *", &["month field \"NOV-FEB\"", "backwards"]),
        ("*/0 * * * *", &["minute field \"*/0\"", "step of 0"]),
        ("*/x * * * *", &["minute field \"*/x\"", "step \"X\" is not a number"]),
        ("*/ * * * *", &["minute field \"*/\"", "not a number"]),
        ("*/5/5 * * * *", &["minute field", "step \"5/5\""]),
        ("*/60 * * * *", &["minute field \"*/60\"", "longer", "0 to 59", "every = \"60m\""]),
        ("0 */24 * * *", &["hour field \"*/24\"", "longer", "every = \"24h\""]),
        ("0 0 */31 * *", &["day-of-month field \"*/31\"", "longer", "1 to 31"]),
        ("0 0 * */12 *", &["month field \"*/12\"", "longer"]),
        ("0 0 * * */7", &["weekday field \"*/7\"", "longer"]),
        ("50/15 * * * *", &["minute field \"50/15\"", "50 to 59"]),
        ("*/18446744073709551616 * * * *", &["minute field", "longer"]),
        ("1,,2 * * * *", &["minute field \"1,,2\"", "extra comma"]),
        ("1, * * * *", &["minute field \"1,\"", "extra comma"]),
        ("? * * * *", &["minute field \"?\"", "a day only"]),
        ("0 0 L-3 * *", &["day-of-month field \"L-3\"", "use L"]),
        ("0 0 L,LW * *", &["day-of-month field", "two jobs"]),
        ("0 0 40W * *", &["day-of-month field \"40W\"", "out of range"]),
        ("0 0 W * *", &["day-of-month field \"W\"", "a number is missing"]),
        ("0 0 * * L", &["weekday field \"L\"", "FRIL"]),
        ("0 0 * * MON#6", &["weekday field \"MON#6\"", "#1 to #5", "1L"]),
        ("0 0 * * MON#", &["weekday field \"MON#\"", "#1 to #5"]),
        ("0 0 * * +1", &["weekday field \"+1\"", "not a value"]),
        ("L * * * *", &["minute field \"L\"", "not a value"]),
        ("H(5 * * * *", &["minute field \"H(5\"", "H(0-29)"]),
        ("H(9-5) * * * *", &["minute field \"H(9-5)\"", "backwards"]),
        ("H/60 * * * *", &["minute field \"H/60\"", "longer"]),
        ("Ω * * * *", &["minute field \"Ω\"", "not a value"]),
        ("0 0 31 2 *", &["never fires", "31", "L"]),
        ("0 0 30,31 FEB *", &["never fires"]),
        ("0 0 31 4,6,9,11 *", &["never fires", "4,6,9,11"]),
        ("0 0 30W 2 *", &["never fires", "30W", "against each other"]),
        ("0 0 15W * */6", &["never fires", "15W"]),
    ];
    for (expr, words) in cases {
        let message = refusal(expr);
        for word in *words {
            assert!(message.contains(word), "{expr:?} is refused without {word:?}: {message}");
        }
    }
}

#[test]
fn a_neighbours_dialect_is_recognised() {
    let cases: &[(&str, &[&str])] = &[
        ("   ", &["empty", "5 fields"]),
        ("hourly", &["found 1 field", "not look like cron"]),
        ("0 0 12 *", &["found 4 fields"]),
        ("0 0 12 * * ? 2030", &["found 7 fields", "Quartz", "drop the year"]),
        ("0 0 12 * * ? 2030-2040", &["Quartz", "drop the year"]),
        ("* * * * * * * *", &["found 8 fields"]),
        ("@every 90s", &["every = \"90s\""]),
        ("@every", &["every = \"30s\""]),
        ("@reboot", &["@reboot", "every = "]),
        ("@fortnightly", &["@fortnightly", "@weekly"]),
        ("@daily 5", &["@daily 5", "not known"]),
        ("CRON_TZ=Europe/Berlin 0 0 * * *", &["timezone = \"Europe/Berlin\""]),
        ("TZ=UTC 0 0 * * *", &["timezone = \"UTC\""]),
        ("cron(0 12 * * ? *)", &["EventBridge"]),
        ("rate(5 minutes)", &["EventBridge"]),
        ("Mon *-*-* 04:00:00", &["systemd"]),
        ("0 5 * * * root", &["crontab line", "\"root\""]),
        ("0 5 * * * /usr/bin/backup", &["crontab line", "params"]),
        ("0 5 * * * root /usr/bin/backup --all", &["crontab line"]),
    ];
    for (expr, words) in cases {
        let message = refusal(expr);
        for word in *words {
            assert!(message.contains(word), "{expr:?} is refused without {word:?}: {message}");
        }
    }
}

#[test]
fn spellings_of_the_same_schedule_are_the_same_timetable() {
    for (one, other) in [
        ("*/15 * * * *", "0 */15 * * * *"),
        ("*/15 * * * *", "0/15 * * * *"),
        ("0 0 * * 0", "0 0 * * 7"),
        ("0 0 * * SUN", "@weekly"),
        ("0 0 * * mon-FRI", "0 0 * * 1-5"),
        ("0 0 ? * 1", "0 0 * * 1"),
        ("0 0 * * 5-7", "0 0 * * FRI-SUN"),
        ("0 0 * * MON#2", "0 0 * * 1#2"),
        ("0 0 1 jan,JUL *", "0 0 1 1,7 *"),
        ("@MIDNIGHT", "@daily"),
        ("  0\t0  * * *  ", "@daily"),
        ("0 0 1 1 *", "@annually"),
    ] {
        assert_eq!(cron(one), cron(other), "{one:?} and {other:?}");
    }
    // One follows elapsed time over a change of the clocks, the other names times.
    assert_ne!(cron("*/30 * * * *"), cron("0,30 0-23 * * *"));
    assert_ne!(cron("0 0 1 * 1"), cron("0 0 */30 * 1"));
}

#[test]
fn both_day_fields_restricted_means_either_and_a_star_in_one_means_both() {
    let june =
        |expr: &str| listed(cron(expr).between(at("2026-05-31T12:00:00Z"), at("2026-06-30T12:00:00Z")));
    assert_eq!(june("0 0 8 * FRI").len(), 5, "the 8th, and four Fridays");
    assert_eq!(
        june("0 0 */7 * MON"),
        [
            "2026-06-01T00:00:00Z",
            "2026-06-08T00:00:00Z",
            "2026-06-15T00:00:00Z",
            "2026-06-22T00:00:00Z",
            "2026-06-29T00:00:00Z"
        ]
    );
    assert_eq!(june("0 0 2 * */2"), ["2026-06-02T00:00:00Z"], "a Tuesday");
    assert_eq!(june("0 0 3 * */2"), [] as [&str; 0], "a Wednesday");
    assert_eq!(june("0 0 1-31 * MON").len(), 30, "1-31 is a restriction, if a wide one");
}

#[test]
fn h_is_decided_by_the_jobs_name_and_stays_so() {
    let first = |expr: &str, name: &str| {
        let timetable = Timetable::cron(expr, Tz::UTC, Some(&job(name))).unwrap();
        listed(timetable.between(at("2026-06-01T00:00:00Z"), at("2027-06-01T00:00:00Z")).take(4))
    };
    // These must never change: a change would move everybody's jobs at an upgrade.
    assert_eq!(first("H H * * *", "reconcile")[0], "2026-06-01T04:46:00Z");
    assert_eq!(first("H/15 * * * *", "reconcile")[..2], ["2026-06-01T00:01:00Z", "2026-06-01T00:16:00Z"]);
    assert_eq!(first("H(0-29) 3 * * *", "reconcile"), first("H(0-29) 3 * * *", "reconcile"));
    let minutes: std::collections::BTreeSet<String> =
        (0..200).map(|n| first("H * * * *", &format!("job-{n}"))[0].clone()).collect();
    assert!(minutes.len() > 50, "200 jobs share {} minutes of 60", minutes.len());
    for n in 0..200 {
        let name = format!("job-{n}");
        let at = first("H(10-19) 3 * * *", &name)[0].clone();
        assert!(("2026-06-01T03:10:00Z"..="2026-06-01T03:19:00Z").contains(&at.as_str()), "{at}");
        assert_eq!(first("0 0 H * *", &name).len(), 4, "every month has the day");
    }
}

#[test]
fn h_without_a_job_is_refused() {
    let error = Timetable::cron("H * * * *", Tz::UTC, None).unwrap_err();
    assert!(error.message.contains("hash of the job's name"), "{error}");
}

#[test]
fn what_may_be_meant_otherwise_is_warned_about() {
    for (expr, word) in [
        ("* */1 * * * *", "fires every second"),
        ("* 30 2 * * *", "every second of the minutes"),
        ("*/45 * * * *", "minute 45 is followed by minute 0"),
        ("0 */5 * * *", "every = \"5h\""),
        ("5/25 * * * *", "uneven step"),
        ("0 0 */2 * *", "day-of-month 31 is followed by day-of-month 1"),
        ("0 0 1 * MON", "either one is enough"),
        ("0 0 29 * *", "skips months without a day 29"),
        ("0 0 31 * *", "write L for the last day of each month"),
        ("0 0 12 ? * 1", "Quartz"),
    ] {
        let warnings = cron(expr).warnings();
        assert!(warnings.iter().any(|warning| warning.contains(word)), "{expr:?}: {warnings:?}");
    }
    for expr in
        ["*/15 * * * *", "0 */6 * * *", "5/15 * * * *", "0 0 L * *", "0 0 30 1-6,8 MON-FRI", "0 9 * * 1-5"]
    {
        let warnings = cron(expr).warnings();
        let rest: Vec<_> = warnings.iter().filter(|warning| !warning.contains("either one")).collect();
        assert!(rest.is_empty(), "{expr:?}: {rest:?}");
    }
}

#[test]
fn no_text_makes_the_reader_panic() {
    use proptest::prelude::*;
    let words = "[-0-9*/,?LWH#()@a-zA-Z=. ]{0,30}";
    let config = ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() };
    proptest!(config, |(expr in proptest::string::string_regex(words).unwrap(), any in any::<String>())| {
        for text in [&expr, &any] {
            if let Ok(timetable) = Timetable::cron(text, Tz::UTC, Some(&job("nightly"))) {
                prop_assert!(timetable.next(at("2026-01-01T00:00:00Z")).is_some(), "{text:?} never fires");
            }
        }
    });
}

#[test]
fn the_ends_of_time_are_no_trouble() {
    use chrono::{DateTime, Utc};
    let daily = Timetable::cron("30 2 * * *", Tz::Europe__Berlin, None).unwrap();
    assert!(daily.next(DateTime::<Utc>::MIN_UTC).is_some());
    assert_eq!(daily.next(DateTime::<Utc>::MAX_UTC), None);
    assert_eq!(daily.next(at("5000-06-01T00:00:00Z")), None);
    let every = Timetable::every(std::time::Duration::from_secs(7)).unwrap();
    assert!(every.next(DateTime::<Utc>::MIN_UTC).is_some());
    assert_eq!(every.next(DateTime::<Utc>::MAX_UTC), None);
    let once = Timetable::at(at("2026-06-01T00:00:00Z")).unwrap();
    assert_eq!(once.next(at("2026-05-31T23:59:59Z")), Some(at("2026-06-01T00:00:00Z")));
    assert_eq!(once.next(at("2026-06-01T00:00:00Z")), None);
    assert!(Timetable::at(at("2026-06-01T00:00:00.5Z")).is_err());
}
