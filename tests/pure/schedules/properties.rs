//! What holds for every schedule, in every zone, at every moment.

use std::process::Command;

use chrono::{DateTime, TimeDelta, Utc};
use chrono_tz::Tz;
use proptest::prelude::*;
use proptest::sample::select;
use runner::internal::schedule::Timetable;

use super::reference::Reference;
use super::{at, listed};

/// Zones that have put their clocks forward and back in every way there is.
const ZONES: [&str; 16] = [
    "UTC",
    "Europe/Berlin",
    "Europe/Dublin",       // winter is the saving time
    "America/New_York",    // a change at two in the morning
    "America/Sao_Paulo",   // a change at midnight
    "America/Santiago",    // the same, into the day before
    "Australia/Lord_Howe", // half an hour
    "Africa/Casablanca",   // four changes a year
    "Africa/Cairo",
    "Pacific/Apia",      // a whole day
    "Pacific/Kwajalein", // another
    "Asia/Kathmandu",    // a quarter of an hour, once
    "Asia/Pyongyang",
    "Asia/Gaza",
    "America/Caracas",
    "Antarctica/Troll", // two hours
];

fn zone() -> impl Strategy<Value = Tz> {
    select(&ZONES[..]).prop_map(|name| name.parse().unwrap())
}

/// Any moment of half a century; about half of them within a day of a change of the clock.
fn moment(zone: Tz) -> impl Strategy<Value = DateTime<Utc>> {
    let span = 0..60 * 366 * 86_400_i64;
    let start = at("1975-01-01T00:00:00Z");
    (span, any::<bool>(), -90_000..90_000_i64).prop_map(move |(seconds, seek, offset)| {
        let anywhere = start + TimeDelta::seconds(seconds);
        let near = if seek { next_change(zone, anywhere) } else { None };
        let moment = near.map_or(anywhere, |change| change + TimeDelta::seconds(offset));
        // A whole minute, so that the reference may walk by minutes.
        moment - TimeDelta::seconds(moment.timestamp() % 60)
    })
}

/// The next change of the clock after `from`, within two years.
fn next_change(zone: Tz, from: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let ahead = |t: DateTime<Utc>| t.with_timezone(&zone).naive_local() - t.naive_utc();
    let step = |start, length, steps: i32| {
        let mut times = (0..steps).map(move |n| start + length * n);
        times.find(|t| ahead(*t) != ahead(*t + length))
    };
    let quarter_day = step(from, TimeDelta::hours(6), 4 * 731)?;
    let minute = step(quarter_day, TimeDelta::minutes(1), 6 * 60)?;
    step(minute, TimeDelta::seconds(1), 60).map(|t| t + TimeDelta::seconds(1))
}

fn number(low: u32, high: u32) -> impl Strategy<Value = String> + Clone {
    (low..=high).prop_map(|n| n.to_string())
}

/// One item of a list: a value, a range, a step in any of its forms.
fn item(low: u32, high: u32) -> impl Strategy<Value = String> {
    let span = high - low;
    prop_oneof![
        5 => number(low, high),
        1 => (low..=high, 0..=span).prop_map(move |(a, n)| format!("{a}-{}", high.min(a + n))),
        1 => (low..high, any::<u32>()).prop_map(move |(a, n)| format!("{a}/{}", 1 + n % (high - a))),
        1 => (low..high, any::<u32>(), any::<u32>()).prop_map(move |(a, b, n)| {
            let to = a + 1 + b % (high - a);
            format!("{a}-{to}/{}", 1 + n % (to - a))
        }),
    ]
}

fn items(low: u32, high: u32) -> impl Strategy<Value = String> {
    proptest::collection::vec(item(low, high), 1..4).prop_map(|items| items.join(","))
}

fn stars(low: u32, high: u32) -> impl Strategy<Value = String> {
    prop_oneof![2 => Just("*".to_owned()), 1 => (1..=high - low).prop_map(|n| format!("*/{n}"))]
}

fn expression() -> impl Strategy<Value = String> {
    let second = prop_oneof![
        6 => Just(String::new()),
        1 => Just("0 ".to_owned()),
        1 => items(0, 59).prop_map(|s| s + " "),
        1 => stars(0, 59).prop_map(|s| s + " "),
    ];
    let minute = prop_oneof![3 => items(0, 59), 1 => stars(0, 59)];
    // The night is where clocks change.
    let hour = prop_oneof![4 => items(0, 4), 1 => items(0, 23), 1 => number(21, 23), 2 => stars(0, 23)];
    let day = prop_oneof![
        6 => Just("*".to_owned()),
        1 => Just("?".to_owned()),
        2 => items(1, 31),
        1 => stars(1, 31),
        1 => select(&["L", "LW", "1W", "15W", "30W", "31W", "15,L", "7W,L", "1-7,LW"][..]).prop_map(str::to_owned),
    ];
    let month = prop_oneof![
        6 => Just("*".to_owned()),
        1 => items(1, 12),
        1 => stars(1, 12),
        1 => select(&["jan,MAR-may", "Oct-DEC", "FEB"][..]).prop_map(str::to_owned),
    ];
    let weekday = prop_oneof![
        6 => Just("*".to_owned()),
        1 => Just("?".to_owned()),
        2 => items(0, 6),
        1 => stars(0, 6),
        1 => select(&["7", "sun", "Mon-FRI", "5-7", "MON#2", "7#1", "5L", "satL,2", "SUN#5", "0-7"][..])
            .prop_map(str::to_owned),
    ];
    (second, minute, hour, day, month, weekday)
        .prop_map(|(s, m, h, d, mo, w)| format!("{s}{m} {h} {d} {mo} {w}"))
}

/// A schedule, a zone and a moment to ask it.
fn question() -> impl Strategy<Value = (String, Tz, DateTime<Utc>)> {
    zone().prop_flat_map(|zone| (expression(), Just(zone), moment(zone)))
}

/// A schedule with times around a change of the clock, and a moment around it to ask it.
fn question_around_a_change() -> impl Strategy<Value = (String, Tz, DateTime<Utc>)> {
    let start = at("1975-01-01T00:00:00Z");
    let zone = prop_oneof![3 => zone(), 1 => select(&chrono_tz::TZ_VARIANTS[..])];
    let change = (zone, 0..55 * 366_i64).prop_map(move |(zone, day)| {
        // A zone without a change in that time: any day will do.
        let day = start + TimeDelta::days(day);
        (zone, next_change(zone, day).unwrap_or(day))
    });
    let minute = select(&["0", "30", "59", "0,30", "15,45", "20-40", "*/30", "*/15", "*", "10-50/20"][..]);
    let by = select(&[0, 0, 0, 1, -1, 2, -2_i64][..]);
    let hours = (by.clone(), by, 0..6_u8);
    let day = select(&["* * *", "* * *", "today * *", "today * */2", "*/2 * *"][..]);
    // The pass before the change and the one after it, mostly.
    let asked = prop_oneof![-9_000_000..9_000_000_i64, -3_700_000..3_700_000_i64, 0..3_700_000_i64];
    (change, minute, hours, day, asked).prop_map(|((zone, change), minute, (one, two, how), day, asked)| {
        let local = (change - TimeDelta::seconds(1)).with_timezone(&zone).naive_local();
        let hour = |by: i64| (local + TimeDelta::hours(by)).format("%-H").to_string();
        let hours = match how {
            0 => "*".to_owned(),
            1 => "*/2".to_owned(),
            2 => hour(one),
            _ => format!("{},{}", hour(one), hour(two)),
        };
        let day = day.replace("today", &local.format("%-d").to_string());
        (format!("{minute} {hours} {day}"), zone, change + TimeDelta::milliseconds(asked))
    })
}

/// How far to look: enough for some firings, not so far that brute force takes for ever.
fn window(expr: &str) -> TimeDelta {
    if expr.split(' ').count() == 6 && !expr.starts_with("0 ") {
        TimeDelta::hours(5)
    } else {
        TimeDelta::hours(80)
    }
}

/// An expression that never fires is refused; brute force must agree.
fn timetable(expr: &str, zone: Tz, after: DateTime<Utc>) -> Result<Option<Timetable>, TestCaseError> {
    match Timetable::cron(expr, zone, None) {
        Ok(timetable) => Ok(Some(timetable)),
        Err(error) if error.message.contains("never fires") => {
            let fires = Reference::new(expr).between(zone, after, after + window(expr));
            prop_assert!(fires.is_empty(), "{expr:?} is refused, yet fires at {:?}", listed(fires));
            Ok(None)
        }
        Err(error) => Err(TestCaseError::fail(format!("{expr:?}: {error}"))),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn brute_force_finds_the_same_instants((expr, zone, after) in question()) {
        if let Some(timetable) = timetable(&expr, zone, after)? {
            let until = after + window(&expr);
            let right = listed(Reference::new(&expr).between(zone, after, until));
            let got = listed(timetable.between(after, until));
            prop_assert_eq!(got, right, "{:?} in {} after {}", expr, zone, after);
        }
    }

    /// Where a stateful clock would be needed, if the schedule were not a function.
    #[test]
    fn asked_at_any_moment_around_a_change_the_answer_is_right(
        (expr, zone, asked) in question_around_a_change(),
    ) {
        if let Some(timetable) = timetable(&expr, zone, asked)? {
            let minute = asked - TimeDelta::milliseconds(asked.timestamp_millis() % 60_000);
            let until = minute + TimeDelta::hours(30);
            let right = Reference::new(&expr).between(zone, minute, until).into_iter().find(|t| *t > asked);
            let got = timetable.next(asked).filter(|t| *t <= until);
            prop_assert_eq!(got, right, "{:?} in {} asked at {}", expr, zone, asked);
        }
    }

    /// What a process started between two instants sees is what one sees that ran all along.
    #[test]
    fn the_answer_depends_on_nothing_but_the_question(
        (expr, zone, after) in question(),
        cuts in proptest::collection::vec(0..288_000_000_i64, 24),
    ) {
        if let Some(timetable) = timetable(&expr, zone, after)? {
            let until = after + window(&expr);
            let all: Vec<_> = timetable.between(after, until).collect();
            prop_assert!(all.is_sorted_by(|a, b| a < b), "{expr:?} in {zone}: {:?}", listed(all));
            prop_assert!(all.iter().all(|t| t.timestamp_subsec_nanos() == 0));
            for cut in cuts {
                let asked = after + TimeDelta::milliseconds(cut % (until - after).num_milliseconds());
                let right = all.iter().copied().find(|t| *t > asked);
                let got = timetable.next(asked).filter(|t| *t <= until);
                prop_assert_eq!(got, right, "{:?} in {} asked at {}", expr, zone, asked);
            }
        }
    }

    /// Two planners, each with a cursor, a look-ahead and beats of its own.
    #[test]
    fn two_replicas_started_at_different_moments_plan_the_same_firings(
        (expr, zone, start) in question(),
        late in 0..240_000_i64,
        beats in (700..3000_i64, 700..3000_i64),
    ) {
        if let Some(timetable) = timetable(&expr, zone, start)? {
            let both_run_from = start + TimeDelta::milliseconds(late) + TimeDelta::seconds(3);
            let until = both_run_from + TimeDelta::minutes(5);
            let one = plan(&timetable, start, until, beats.0);
            let two = plan(&timetable, start + TimeDelta::milliseconds(late), until, beats.1);
            let common = |firings: &[DateTime<Utc>]| {
                listed(firings.iter().copied().filter(|t| *t > both_run_from && *t <= until))
            };
            prop_assert_eq!(common(&one), common(&two), "{:?} in {}", expr, zone);
        }
    }

    #[test]
    fn every_lists_the_same_multiples_for_everybody(
        seconds in 1..200_000_u64,
        one in 0..4_000_000_000_000_i64,
        apart in 0..1_000_000_i64,
    ) {
        let timetable = Timetable::every(std::time::Duration::from_secs(seconds)).unwrap();
        let one = DateTime::from_timestamp_millis(one).unwrap();
        let two = one + TimeDelta::milliseconds(apart);
        let until = two + TimeDelta::seconds(seconds as i64 * 5);
        let late: Vec<_> = timetable.between(two, until).collect();
        let early: Vec<_> = timetable.between(one, until).filter(|t| *t > two).collect();
        prop_assert_eq!(&early, &late);
        prop_assert_eq!(late.len(), 5);
        prop_assert!(late.iter().all(|t| t.timestamp() % seconds as i64 == 0));
    }
}

fn plan(timetable: &Timetable, start: DateTime<Utc>, until: DateTime<Utc>, beat: i64) -> Vec<DateTime<Utc>> {
    let (mut now, mut cursor, mut planned) = (start, start, Vec::new());
    while cursor < until {
        let horizon = now + TimeDelta::milliseconds(2500);
        planned.extend(timetable.between(cursor, horizon));
        cursor = horizon;
        now += TimeDelta::milliseconds(beat);
    }
    planned
}

/// Prints what the other test compares.
#[test]
fn lists_are_printed_whatever_the_host_zone_is() {
    let mut lines = 0;
    for zone in ZONES {
        for expr in ["30 2 * * *", "0 0 * * *", "*/20 * * * *", "0 30 1 L * ?"] {
            let timetable = Timetable::cron(expr, zone.parse().unwrap(), None).unwrap();
            for after in ["2011-12-28T00:00:00Z", "2026-03-27T12:00:00Z", "2026-10-24T12:00:00Z"] {
                let next = listed(timetable.between(at(after), at(after) + TimeDelta::days(400)).take(100));
                println!("list: {zone} {expr} {after} {next:?}");
                lines += 1;
            }
        }
    }
    assert_eq!(lines, ZONES.len() * 4 * 3);
}

#[test]
fn the_hosts_zone_never_matters() {
    let lists = |host_zone: &str| {
        let test = testbed::test_name!(lists_are_printed_whatever_the_host_zone_is);
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", test, "--nocapture"])
            .env("TZ", host_zone)
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{text}");
        text.lines().filter(|line| line.contains("list: ")).map(str::to_owned).collect::<Vec<_>>()
    };
    let here = lists("UTC");
    assert_eq!(here.len(), ZONES.len() * 4 * 3);
    for host_zone in ["Europe/London", "Pacific/Apia", "America/Sao_Paulo", "Nowhere/Atall"] {
        assert_eq!(lists(host_zone), here, "with TZ={host_zone}");
    }
}
