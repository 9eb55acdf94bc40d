//! `runner next`: what it prints.

use super::{JobForNext, NextArgs, NextError, run};
use crate::firing::JobName;
use crate::schedule::Timetable;
use chrono_tz::Tz;
use clap::Parser;

fn at(text: &str) -> chrono::DateTime<chrono::Utc> {
    text.parse().unwrap()
}

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    args: NextArgs,
}

fn parse(words: &[&str]) -> Result<NextArgs, clap::Error> {
    Command::try_parse_from(std::iter::once(&"next").chain(words)).map(|command| command.args)
}

/// What two jobs and a sleeping one make of the words: what is printed, and what is noted.
fn next(words: &[&str]) -> Result<(String, String), NextError> {
    let names = ["billing", "report", "asleep"].map(|name| JobName::new(name).unwrap());
    let berlin = Tz::Europe__Berlin;
    let tables = [
        Timetable::cron("30 2 * * *", berlin, Some(&names[0])).unwrap(),
        Timetable::every(std::time::Duration::from_secs(3600)).unwrap(),
        Timetable::cron("@daily", Tz::UTC, None).unwrap(),
    ];
    let jobs: Vec<JobForNext<'_>> = names
        .iter()
        .zip(&tables)
        .map(|(name, timetable)| JobForNext {
            name,
            timetable,
            timezone: berlin,
            enabled: name.as_str() != "asleep",
        })
        .collect();
    let args = parse(words).unwrap_or_else(|error| panic!("{error}"));
    let (mut out, mut notes) = (Vec::new(), Vec::new());
    run(&args, &jobs, at("2026-03-28T12:00:00Z"), &mut out, &mut notes)?;
    Ok((String::from_utf8(out).unwrap(), String::from_utf8(notes).unwrap()))
}

#[test]
fn a_schedule_is_listed_as_json_without_a_job() {
    let (out, notes) = next(&[
        "--schedule",
        "30 2 * * *",
        "--timezone",
        "Europe/Berlin",
        "--after",
        "2026-03-28T00:00:00Z",
        "--until",
        "2026-03-31T00:00:00Z",
        "--format",
        "json",
    ])
    .unwrap();
    assert_eq!(
        out,
        "{\"job\":null,\"scheduled_at\":\"2026-03-28T01:30:00Z\"}\n\
         {\"job\":null,\"scheduled_at\":\"2026-03-29T01:00:00Z\"}\n\
         {\"job\":null,\"scheduled_at\":\"2026-03-30T00:30:00Z\"}\n"
    );
    assert_eq!(notes, "");
}

#[test]
fn text_shows_utc_and_local_time_with_its_zone_and_what_the_clocks_do() {
    let (out, _) = next(&["billing", "--count", "2"]).unwrap();
    assert_eq!(
        out,
        "JOB      UTC                   LOCAL                                         CLOCKS\n\
         billing  2026-03-29T01:00:00Z  Sun 2026-03-29 03:00:00 +02:00 Europe/Berlin  clocks go forward from 02:00 to 03:00; its time does not exist on this day, moved to the end of the gap\n\
         billing  2026-03-30T00:30:00Z  Mon 2026-03-30 02:30:00 +02:00 Europe/Berlin\n"
    );
    let (out, _) = next(&["--schedule", "every 1h", "--count", "1"]).unwrap();
    assert_eq!(
        out,
        "UTC                   LOCAL\n\
         2026-03-28T13:00:00Z  Sat 2026-03-28 13:00:00 +00:00 UTC\n"
    );
}

#[test]
fn every_job_is_listed_by_itself_and_one_that_is_not_enabled_is_noted() {
    let (out, notes) = next(&["--count", "2", "--format", "json"]).unwrap();
    let jobs: Vec<&str> = out.lines().map(|line| line.split('"').nth(3).unwrap()).collect();
    assert_eq!(jobs, ["billing", "billing", "report", "report"]);
    assert_eq!(notes, "note: asleep does not fire: enabled = false\n");
}

#[test]
fn ten_are_listed_unless_a_number_or_an_end_is_given() {
    let lines = |words: &[&str]| next(words).unwrap().0.lines().count();
    assert_eq!(lines(&["report", "--format", "json"]), 10);
    assert_eq!(lines(&["report", "--format", "json", "--until", "2026-03-29T12:00:00Z"]), 24);
    assert_eq!(lines(&["report", "--format", "json", "--until", "2026-03-29T12:00Z", "--count", "3"]), 3);
}

#[test]
fn a_list_without_end_is_cut_and_says_so() {
    let (out, notes) =
        next(&["--schedule", "every 1s", "--until", "2026-06-28T12:00:00Z", "--format", "json"]).unwrap();
    assert_eq!(out.lines().count(), 100_000);
    assert_eq!(notes, "note: the first 100000 firings; there are more, see --count\n");
}

#[test]
fn nothing_to_list_is_said() {
    let (out, notes) = next(&["--schedule", "at 2026-01-01T00:00:00Z"]).unwrap();
    assert_eq!(out, "");
    assert_eq!(notes, "note: no firing after 2026-03-28T12:00:00Z\n");
    let (out, notes) = next(&["billing", "--until", "2026-03-28T13:00:00Z"]).unwrap();
    assert_eq!(out, "");
    assert_eq!(notes, "note: no firing of billing after 2026-03-28T12:00:00Z until 2026-03-28T13:00:00Z\n");
}

#[test]
fn warnings_go_to_the_notes_and_not_between_the_lines() {
    let (out, notes) = next(&["--schedule", "*/45 * * * *", "--format", "json"]).unwrap();
    assert_eq!(out.lines().count(), 10);
    assert!(notes.starts_with("note: uneven step"), "{notes}");
}

#[test]
fn what_cannot_be_listed_is_refused() {
    let unknown = next(&["bling"]).unwrap_err().to_string();
    assert_eq!(unknown, "there is no job \"bling\"; the file has billing, report, asleep");
    for (schedule, word) in [
        ("0 0 31 2 *", "never fires"),
        ("H * * * *", "job's name"),
        ("every 5", "every:"),
        ("every 1500ms", "whole seconds"),
        ("at noon", "with its zone"),
    ] {
        let error = next(&["--schedule", schedule]).unwrap_err().to_string();
        assert!(error.starts_with("--schedule: ") && error.contains(word), "{error}");
    }
    for words in [
        &["billing", "--schedule", "@daily"][..],
        &["--timezone", "Europe/Berlin"],
        &["--schedule", "@daily", "--timezone", "Berlin"],
        &["--after", "2026-03-28 12:00"],
        &["--after", "tomorrow"],
        &["--count", "0"],
    ] {
        assert_eq!(parse(words).expect_err("{words:?} is refused").exit_code(), 2);
    }
    assert!(!parse(&["--schedule", "@daily"]).unwrap().needs_jobs());
    assert!(parse(&["billing"]).unwrap().needs_jobs());
}
