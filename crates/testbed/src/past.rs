//! Reads the ledger's tables directly, without the product.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::PrivatePostgres;
use crate::oracle::{Attempt, Change, History, Row, Timetable, Witness};

/// A trigger that records every change of a firing's row. The changes of one row are in order.
const WATCH: &str = "
    CREATE TABLE trail (n bigserial, at timestamptz DEFAULT clock_timestamp(), firing bigint,
        was text, became text, fence_before bigint, fence bigint);
    CREATE FUNCTION trail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO trail (firing, was, became, fence_before, fence)
        VALUES (coalesce(NEW.id, OLD.id), OLD.state, NEW.state, OLD.fence, NEW.fence);
        RETURN NULL;
    END $$;
    CREATE TRIGGER trail AFTER INSERT OR UPDATE OR DELETE ON runner_firings
        FOR EACH ROW EXECUTE FUNCTION trail();";

/// Starts to record every change of a firing's row.
pub fn watch(database: &str) {
    PrivatePostgres::sql_at(database, WATCH);
}

/// Every change so far.
pub fn changes(database: &str) -> Vec<Change> {
    objects(database, "SELECT * FROM trail ORDER BY n").iter().map(change).collect()
}

/// Rows, attempts and timetables of the firings that were due by `until`. The test passes the `period` of each
/// job.
pub fn read(database: &str, until: DateTime<Utc>, period: impl Fn(&str) -> Duration) -> History {
    let by = until.to_rfc3339();
    let rows = objects(database, &format!("SELECT * FROM runner_firings WHERE scheduled_at <= '{by}'"));
    let attempts = objects(
        database,
        &format!(
            "SELECT a.* FROM runner_attempts a JOIN runner_firings f ON f.id = a.firing_id WHERE f.scheduled_at <= '{by}'"
        ),
    );
    let jobs = objects(database, "SELECT * FROM runner_jobs");
    History {
        rows: rows.iter().map(row).collect(),
        attempts: attempts.iter().map(attempt).collect(),
        effects: Vec::new(),
        timetables: jobs.iter().map(|job| timetable(job, until, &period)).collect(),
        witness: Witness::default(),
    }
}

/// How many firings that were due by `until` have not ended.
pub fn open_rows(database: &str, until: DateTime<Utc>) -> usize {
    let by = until.to_rfc3339();
    let count = format!(
        "SELECT count(*) FROM runner_firings WHERE scheduled_at <= '{by}' AND state IN ('queued', 'running')"
    );
    PrivatePostgres::sql_at(database, &count).trim().parse().unwrap()
}

fn objects(database: &str, select: &str) -> Vec<Value> {
    let text = PrivatePostgres::sql_at(database, &format!("SELECT to_json(t) FROM ({select}) AS t"));
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn row(value: &Value) -> Row {
    Row {
        id: value["id"].as_i64().unwrap(),
        job: text(value, "job"),
        scheduled_at: instant(value, "scheduled_at").unwrap(),
        state: text(value, "state"),
        reason: text(value, "reason"),
        attempt: number(value, "attempt"),
        crashes: number(value, "crashes"),
        fence: value["fence"].as_i64(),
        exclusive: value["exclusive"].as_bool().unwrap(),
        delivery: text(value, "delivery"),
        started_at: instant(value, "started_at"),
        finished_at: instant(value, "finished_at"),
    }
}

fn attempt(value: &Value) -> Attempt {
    Attempt {
        firing_id: value["firing_id"].as_i64().unwrap(),
        attempt: number(value, "attempt"),
        fence: value["fence"].as_i64().unwrap(),
        started_at: instant(value, "started_at"),
        ended_at: instant(value, "ended_at").unwrap(),
        owner: text(value, "owner"),
        reason: text(value, "reason"),
    }
}

fn change(value: &Value) -> Change {
    let state = |key: &str| value[key].as_str().map(str::to_owned);
    Change {
        row: value["firing"].as_i64().unwrap(),
        at: instant(value, "at").unwrap(),
        from: state("was"),
        to: state("became"),
        fence_before: value["fence_before"].as_i64(),
        fence: value["fence"].as_i64(),
    }
}

fn timetable(job: &Value, until: DateTime<Utc>, period: impl Fn(&str) -> Duration) -> Timetable {
    let name = text(job, "name");
    let every = period(&name);
    Timetable { job: name, from: instant(job, "known_since").unwrap(), until, every }
}

fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}

fn number(value: &Value, key: &str) -> u32 {
    u32::try_from(value[key].as_u64().unwrap()).unwrap()
}

fn instant(value: &Value, key: &str) -> Option<DateTime<Utc>> {
    value[key].as_str().map(|text| DateTime::parse_from_rfc3339(text).unwrap().to_utc())
}
