//! The sections that are not jobs, read into their settings.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tracing::level_filters::LevelFilter;

use super::address;
use super::budget::{LONGEST_TTL, SHORTEST_TTL};
use super::cautions;
use super::diagnose::{Findings, KeyPath, Reported, hints};
use super::duration::{self, duration};
use super::layers::Layers;
use super::not_built;
use super::secret::Resolver;
use super::section::Section;
use super::settings::{AdminSettings, LedgerSettings, LockSettings, LogFormat, LogSettings, RunnerSettings};
use super::value::{self, Fault, Table, text, truth, whole};
use super::zone::zone;

/// Rows younger than this may still be asked for by a claim or a reconciliation.
const SHORTEST_RETENTION: Duration = Duration::from_secs(60 * 60);

/// What `[runner]`, `[log]`, `[lock]`, `[ledger]` and `[admin]` say.
#[derive(Debug)]
pub(crate) struct Sections {
    pub(crate) runner: Result<RunnerSettings, Reported>,
    pub(crate) log: Result<LogSettings, Reported>,
    pub(crate) lock: Result<LockSettings, Reported>,
    pub(crate) ledger: Result<LedgerSettings, Reported>,
    pub(crate) admin: Result<Option<AdminSettings>, Reported>,
}

/// Reads them all, each as if the others were fine.
pub(crate) fn read(layers: &Layers, resolver: &Resolver<'_>, findings: &Findings) -> Sections {
    let empty = Table::new();
    let section = |name: &'static str| {
        Section::new(KeyPath::of([name]), layers.sections.get(name).unwrap_or(&empty), findings)
    };
    let admin =
        layers.sections.get("admin").map(|table| Section::new(KeyPath::of(["admin"]), table, findings));
    Sections {
        runner: runner(&section("runner")),
        log: log(&section("log")),
        lock: lock(&section("lock"), resolver),
        ledger: ledger(&section("ledger"), resolver, &resolver.directory),
        admin: admin.map(|section| admin_settings(&section, resolver)).transpose(),
    }
}

fn runner(section: &Section<'_>) -> Result<RunnerSettings, Reported> {
    section.refuse_unknown(&["namespace", "timezone", "max_concurrent", "shutdown_grace"]);
    let namespace = section.need("namespace", "", namespace);
    let timezone = section.need("timezone", "", zone);
    let max_concurrent = section.need("max_concurrent", "", |value| whole(value, 1, 100_000));
    let shutdown_grace = section.need("shutdown_grace", "", duration);
    Ok(RunnerSettings {
        namespace: namespace?,
        timezone: timezone?,
        max_concurrent: max_concurrent? as usize,
        shutdown_grace: shutdown_grace?,
    })
}

/// It stands in lock keys, in rows and in idempotency keys, where other characters mean something.
fn namespace(value: &config::Value) -> Result<Arc<str>, Fault> {
    let name = text(value)?;
    let fine = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    if starts_well && name.len() <= 100 && name.chars().all(fine) {
        return Ok(name.into());
    }
    let rule = "letters, digits, '.', '_' and '-', beginning with a letter or digit, at most 100";
    Err(Fault::new(format!("{name:?} is no namespace")).hint(format!("a namespace is {rule}")))
}

fn log(section: &Section<'_>) -> Result<LogSettings, Reported> {
    section.refuse_unknown(&["format", "level"]);
    let format = section.need("format", "", value::word::<LogFormat>);
    let level = section.need("level", "", level);
    Ok(LogSettings { format: format?, level: level? })
}

fn level(value: &config::Value) -> Result<LevelFilter, Fault> {
    const LEVELS: [(&str, LevelFilter); 6] = [
        ("trace", LevelFilter::TRACE),
        ("debug", LevelFilter::DEBUG),
        ("info", LevelFilter::INFO),
        ("warn", LevelFilter::WARN),
        ("error", LevelFilter::ERROR),
        ("off", LevelFilter::OFF),
    ];
    let word = text(value)?;
    if let Some((_, level)) = LEVELS.iter().find(|(name, _)| *name == word) {
        return Ok(*level);
    }
    let names = LEVELS.map(|(name, _)| name);
    let near = hints::foreign_word(word, &names).or_else(|| hints::nearest(word, names));
    Err(Fault::new(format!("{word:?} is not one of {}", names.join(", ")))
        .maybe_hint(near.map(|near| format!("did you mean \"{near}\"?"))))
}

fn lock(section: &Section<'_>, resolver: &Resolver<'_>) -> Result<LockSettings, Reported> {
    section.refuse_unknown(&["url", "ttl"]);
    let url = section.read("url", |value| address::lock(resolver.secret(value)?));
    let ttl = section.need("ttl", "", ttl);
    Ok(LockSettings { url: url?, ttl: ttl? })
}

/// A ttl, of `[lock]` or of a job.
pub(crate) fn ttl(value: &config::Value) -> Result<Duration, Fault> {
    let why = "below one second network timeouts and a busy machine would lose leases that are held";
    let ttl = duration::at_least(value, SHORTEST_TTL, why)?;
    if ttl > LONGEST_TTL {
        let message = "a ttl is at most a day: a firing whose owner vanished waits that long for another";
        return Err(Fault::new(message).hint("long runs are covered by renewals: set timeout instead"));
    }
    Ok(ttl)
}

fn ledger(
    section: &Section<'_>,
    resolver: &Resolver<'_>,
    directory: &Path,
) -> Result<LedgerSettings, Reported> {
    section.refuse_unknown(&["url", "retention", "migrate", "pooler"]);
    let url = section.read("url", |value| address::ledger(resolver.secret(value)?, directory));
    let why = "rows that a replica may still ask for would be gone";
    let retention = section.need("retention", "", |value| duration::at_least(value, SHORTEST_RETENTION, why));
    let migrate = section.need("migrate", "", truth);
    let pooler = section.need("pooler", "", truth);
    let url = url?.unwrap_or_else(|| address::usual_ledger(directory));
    Ok(LedgerSettings { url, retention: retention?, migrate: migrate?, pooler: pooler? })
}

fn admin_settings(section: &Section<'_>, resolver: &Resolver<'_>) -> Result<AdminSettings, Reported> {
    section.refuse_unknown(&["listen", "token"]);
    let like = "write for example listen = \"127.0.0.1:8080\"";
    let listen = section.need("listen", like, |value| {
        let address = text(value)?;
        let unreadable = |_| Fault::new(format!("{address:?} is not an address and a port")).hint(like);
        address.parse::<SocketAddr>().map_err(unreadable)
    });
    // Read all the same: a token that is refused must not be shown either.
    let token = section.read("token", |value| resolver.secret(value))?;
    if let Some(fault) = token.and_then(|_| not_built::use_refusal("admin.token")) {
        return Err(section.fault(&section.place("token"), fault));
    }
    let settings = AdminSettings { listen: listen? };
    cautions::of_admin(section, &settings);
    Ok(settings)
}
