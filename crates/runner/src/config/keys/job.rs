//! `[defaults]` and `[jobs.NAME]`: the keys of a job.

use std::time::Duration;

use chrono::{DateTime, Utc};
use chrono_tz::Tz;
use config::Value;
use serde_json::json;

use super::lock::ttl;
use super::row::{Built, Key, keys};
use crate::config::budget::MOST_RENEWALS;
use crate::config::diagnose::{Exposure, hints};
use crate::config::duration::{at_least, duration};
use crate::config::value::{BadValue, Table, boolean, table, text, whole, word};
use crate::config::walk::Walk;
use crate::config::zone::zone;
use crate::firing::Delivery;
use crate::rules::{Guard, Misfire, OnUnavailable, Overlap};

/// A firing is always a little late: with less than this it would never be in time.
const SHORTEST_DEADLINE: Duration = Duration::from_secs(1);

/// The shortest run that could do anything.
const SHORTEST_TIMEOUT: Duration = Duration::from_millis(1);

keys! { "defaults":
    DESCRIPTION: String = Key::new("description", "text", |value, _| text(value).map(str::to_owned),
        "For people.")
        .default_in_words("none")
        .exposed(Exposure::InToml)
        .json("description", |job| json!(job.description));

    SCHEDULE: String = Key::new("schedule", "cron", |value, _| text(value).map(str::to_owned),
        "Five fields, minute first, or six, second first; `@daily` and the like.")
        .refuses("expressions that are wrong or never fire")
        .json("schedule", |job| json!(job.schedule_text));

    EVERY: Duration = Key::new("every", "duration", |value, _| duration(value),
        "Every multiple of this since 1970-01-01T00:00:00Z, so that all replicas mean the same instants.")
        .refuses("fractions of a second, zero");

    AT: DateTime<Utc> = Key::new("at", "time", |value, _| instant(value),
        "Once: `2026-06-01T00:00:00Z`, with or without quotes.")
        .refuses("a time without `Z` or an offset, fractions of a second");

    TIMEZONE: Tz = Key::new("timezone", "zone", |value, _| zone(value),
        "The zone in which `schedule` is read. It has no effect on the other two (a warning).")
        .default_in_words("`runner.timezone`")
        .refuses("unknown zones")
        .json("timezone", |job| json!(job.timezone.name()));

    KIND: String = Key::new("kind", "one of", kind,
        "Which implementation runs the job, for instance `command`.")
        .refuses("unknown kinds")
        .json("kind", |job| json!(job.kind));

    // In no JSON: it may hold secrets.
    PARAMS: Table = Key::new("params", "table", |value, _| table(value).cloned(),
        "What the kind is told: [`command`](commands.md), [`http`](http.md); for `sql` see [transactions](transactions.md).")
        .exposed(Exposure::InToml)
        .refuses("what the kind refuses, unknown keys");

    TIMEOUT: Duration = Key::new("timeout", "duration",
        |value, _| at_least(value, SHORTEST_TIMEOUT, "every run would be cancelled at once"),
        "The hard limit of a run. A run that reaches it is ended and has failed.")
        .default_in_words("follows")
        .refuses("less than `1ms`; what the lock cannot cover")
        .json("timeout_ms", |job| millis(job.budget.timeout));

    TTL: Duration = Key::new("ttl", "duration", |value, _| ttl(value),
        "The lease of a run. It is renewed every third of it.")
        .default_in_words("`lock.ttl`")
        .refuses("as for `lock.ttl`")
        .json("ttl_ms", |job| millis(job.budget.ttl));

    MAX_RENEWALS: u32 = Key::new("max_renewals", "number", |value, _| whole(value, 0, MOST_RENEWALS),
        "How often the lock is renewed, at most. Better a run that fails than a lock that is held for ever.")
        .default_in_words("follows")
        .refuses("more than 1000000")
        .json("max_renewals", |job| json!(job.budget.max_renewals));

    KILL_GRACE: Duration = Key::new("kill_grace", "duration", |value, _| duration(value),
        "How long a run may take to end after it was asked to.")
        .default_in_words("`ttl/6`, at most `\"5s\"`")
        .refuses("more than a third of the ttl")
        .json("kill_grace_ms", |job| millis(job.budget.kill_grace));

    OVERLAP: Overlap = Key::new("overlap", "one of", |value, _| word(value),
        "What happens when a firing is due while the job still runs: `skip` it (the ledger says so), `queue` it, `replace` the running one, `allow` both.")
        .default("\"skip\"")
        .built(Built::Only(&["skip", "allow"]))
        .refuses("`queue` and `replace`, which are not built yet")
        .json("overlap", |job| json!(job.overlap.as_str()));

    MISFIRE: Misfire = Key::new("misfire", "one of", |value, _| word(value),
        "What happens to firings that every replica missed: the `latest` runs, `all` run, or all are skipped (`skip`).")
        .default("\"latest\"")
        .refuses("other words")
        .json("misfire", |job| json!(job.misfire.as_str()));

    START_DEADLINE: Duration = Key::new("start_deadline", "duration",
        |value, _| at_least(value, SHORTEST_DEADLINE, "every firing would be too late"),
        "A firing that could not start for this long is skipped, and the ledger says so.")
        .default("\"10m\"")
        .refuses("less than `1s`; more than `ledger.retention`")
        .json("start_deadline_ms", |job| millis(job.start_deadline));

    MAX_CATCHUP: u32 = Key::new("max_catchup", "number", |value, _| whole(value, 1, 10_000),
        "How many missed firings run at most, under `misfire = \"all\"`.")
        .default("100")
        .refuses("less than 1, more than 10000")
        .json("max_catchup", |job| json!(job.max_catchup));

    DELIVERY: Delivery = Key::new("delivery", "one of", |value, _| word(value),
        "When the owner of a run is lost: the firing runs again (`at_least_once`), or ends as `lost` (`at_most_once`).")
        .default("\"at_least_once\"")
        .refuses("`at_most_once` with `max_attempts` above 1")
        .json("delivery", |job| json!(job.delivery.as_str()));

    MAX_ATTEMPTS: u32 = Key::new("max_attempts", "number", |value, _| whole(value, 1, 1_000),
        "How often a firing runs at most, when it fails.")
        .default("1")
        .refuses("less than 1, more than 1000")
        .json("max_attempts", |job| json!(job.max_attempts));

    MAX_CRASHES: u32 = Key::new("max_crashes", "number", |value, _| whole(value, 0, 1_000),
        "How many lost owners and lost leases in the ledger a firing survives. With one more it has failed. Lost locks do not count.")
        .default("3")
        .refuses("more than 1000")
        .json("max_crashes", |job| json!(job.max_crashes));

    BACKOFF: Table = Key::new("backoff", "table", |value, _| table(value).cloned(),
        "The wait before another attempt, and how it grows. Its keys are below; each has its own default.")
        .default_in_words("see below")
        .refuses("unknown keys")
        .json("backoff", |job| {
            let backoff = job.backoff;
            json!({ "initial_ms": millis(backoff.initial), "max_ms": millis(backoff.max), "factor": backoff.factor })
        });

    GUARD: Guard = Key::new("guard", "one of", |value, _| word(value),
        "Which layers a run needs: `both`, the `ledger` alone, the `lock` alone, or `none`.")
        .default("\"both\"")
        .built(Built::Only(&["both", "ledger"]))
        .refuses("`lock` and `none`, which are not built yet")
        .json("guard", |job| json!(job.guard.as_str()));

    ON_UNAVAILABLE: OnUnavailable = Key::new("on_unavailable", "one of", |value, _| word(value),
        "When Redis cannot be reached, or has lost the lock: the ledger alone decides (`ledger_only`), or the firing is skipped and a run is interrupted (`skip`).")
        .default("\"ledger_only\"")
        .refuses("other words")
        .json("on_unavailable", |job| json!(job.on_unavailable.as_str()));

    SHARDS: u32 = Key::new("shards", "number", |value, _| whole(value, 1, 1_024),
        "Into how many parts each firing is split.")
        .default("1")
        .built(Built::Only(&["1"]))
        .refuses("other values, which are not built yet")
        .json("shards", |job| json!(job.shards));

    JITTER: Duration = Key::new("jitter", "duration", |value, _| duration(value),
        "The longest delay of a firing. The delay is a hash that is the same on every replica; the firing keeps its instant.")
        .default("\"0s\"")
        .json("jitter_ms", |job| millis(job.jitter));

    ENABLED: bool = Key::new("enabled", "boolean", |value, _| boolean(value),
        "Whether its schedule fires. What waits in the queue already (a retry, an interrupted run) still runs: to hold that back as well, leave the job out of the file.")
        .default("true")
        .json("enabled", |job| json!(job.enabled));
}

fn millis(duration: Duration) -> serde_json::Value {
    json!(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

/// An instant with its offset.
fn instant(value: &Value) -> Result<DateTime<Utc>, BadValue> {
    let text = text(value)?;
    DateTime::parse_from_rfc3339(text.trim()).map(|at| at.to_utc()).map_err(|_| {
        BadValue::new(format!("{text:?} is not a time with its offset"))
            .hint("write for example 2026-06-01T00:00:00Z or 2026-06-01T02:00:00+02:00")
    })
}

/// The name of one of the kinds.
fn kind(value: &Value, walk: &Walk<'_>) -> Result<String, BadValue> {
    let kind = text(value)?;
    let known = || walk.kind_names.iter().map(String::as_str);
    if known().any(|known| known == kind) {
        return Ok(kind.to_owned());
    }
    let hint = match hints::nearest(kind, known()) {
        Some(nearest) => format!("did you mean \"{nearest}\"?"),
        None => format!("the kinds are {}", walk.kind_names.join(", ")),
    };
    Err(BadValue::new(format!("unknown kind {kind:?}")).hint(hint))
}
