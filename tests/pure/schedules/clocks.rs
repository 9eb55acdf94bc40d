//! Days on which the clocks change, as people are told about them.

use chrono_tz::Tz;
use runner::internal::schedule::{DstEffect, Timetable};

use super::at;

fn note(expr: &str, zone: &str, firing: &str) -> Option<(DstEffect, String)> {
    let zone: Tz = zone.parse().unwrap();
    let timetable = Timetable::cron(expr, zone, None).unwrap();
    let firing = at(firing);
    let before = firing - chrono::TimeDelta::seconds(1);
    assert_eq!(timetable.next(before), Some(firing), "{expr:?} fires then");
    timetable.dst_note(firing, zone).map(|note| (note.effect, note.to_string()))
}

#[test]
fn a_firing_is_told_what_the_clocks_do_to_it() {
    use DstEffect::{FirstOfTwo, FirstOnly, Moved, SameDay, SecondOfTwo};
    let forward = "clocks go forward from 02:00 to 03:00";
    let back = "clocks go back from 03:00 to 02:00";
    for (expr, zone, firing, effect, words) in [
        ("30 2 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", Moved, forward),
        ("0 3 * * *", "Europe/Berlin", "2026-03-29T01:00:00Z", SameDay, forward),
        ("0 0 * * *", "Europe/Berlin", "2026-03-28T23:00:00Z", SameDay, forward),
        ("59 23 * * *", "Europe/Berlin", "2026-03-29T21:59:00Z", SameDay, forward),
        ("30 2 * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", FirstOnly, back),
        ("*/30 * * * *", "Europe/Berlin", "2026-10-25T00:30:00Z", FirstOfTwo, back),
        ("*/30 * * * *", "Europe/Berlin", "2026-10-25T01:30:00Z", SecondOfTwo, back),
        ("0 0 * * *", "America/Sao_Paulo", "2018-11-04T03:00:00Z", Moved, "forward from 00:00 to 01:00"),
        ("30 23 * * *", "America/Sao_Paulo", "2018-02-18T01:30:00Z", FirstOnly, "back from 00:00 to 23:00"),
        (
            "0 12 * * *",
            "Pacific/Apia",
            "2011-12-30T10:00:00Z",
            Moved,
            "forward from 00:00 to 00:00 of 2011-12-31",
        ),
        ("10 2 * * *", "Australia/Lord_Howe", "2026-10-03T15:30:00Z", Moved, "forward from 02:00 to 02:30"),
    ] {
        let (found, text) =
            note(expr, zone, firing).unwrap_or_else(|| panic!("no note on {expr:?} at {firing}"));
        assert_eq!(found, effect, "{expr:?} in {zone} at {firing}: {text}");
        assert!(text.contains(words), "{expr:?} in {zone} at {firing}: {text}");
    }
}

#[test]
fn other_days_have_no_note() {
    assert_eq!(note("30 2 * * *", "Europe/Berlin", "2026-03-28T01:30:00Z"), None);
    assert_eq!(note("30 2 * * *", "Europe/Berlin", "2026-03-30T00:30:00Z"), None);
    assert_eq!(note("0 0 * * *", "Europe/Berlin", "2026-03-29T22:00:00Z"), None);
    assert_eq!(note("30 2 * * *", "UTC", "2026-03-29T02:30:00Z"), None);
}

#[test]
fn a_schedule_that_knows_no_zone_is_noted_in_the_zone_it_is_shown_in() {
    let hourly = Timetable::every(std::time::Duration::from_secs(3600)).unwrap();
    let note = hourly.dst_note(at("2026-10-25T01:00:00Z"), Tz::Europe__Berlin).unwrap();
    assert_eq!(note.effect, DstEffect::SecondOfTwo);
    assert_eq!(hourly.dst_note(at("2026-10-25T01:00:00Z"), Tz::UTC), None);
}
