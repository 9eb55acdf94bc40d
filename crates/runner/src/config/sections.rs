//! The sections that are not jobs, read into their settings.

use super::address;
use super::diagnose::{KeyPath, Reported};
use super::keys::{self, Keys};
use super::layers::Layers;
use super::section::Section;
use super::settings::{AdminSettings, LedgerSettings, LockSettings, LogSettings, RunnerSettings};
use super::value::Table;
use super::walk::Walk;
use super::warnings;

/// What `[runner]`, `[log]`, `[lock]`, `[ledger]` and `[admin]` say.
#[derive(Debug)]
pub(crate) struct Sections {
    pub(crate) runner: Result<RunnerSettings, Reported>,
    pub(crate) log: Result<LogSettings, Reported>,
    pub(crate) lock: Result<LockSettings, Reported>,
    pub(crate) ledger: Result<LedgerSettings, Reported>,
    pub(crate) admin: Result<Option<AdminSettings>, Reported>,
}

/// Reads all sections, each as if the others were right.
pub(crate) fn read(layers: &Layers, walk: &Walk<'_>) -> Sections {
    let empty = Table::new();
    let section = |keys: Keys| {
        let table = layers.sections.get(keys.name).unwrap_or(&empty);
        Section::new(KeyPath::of([keys.name]), table, keys, walk)
    };
    let has_admin = layers.sections.contains_key(keys::admin::KEYS.name);
    Sections {
        runner: runner(&section(keys::runner::KEYS)),
        log: log(&section(keys::log::KEYS)),
        lock: lock(&section(keys::lock::KEYS)),
        ledger: ledger(&section(keys::ledger::KEYS), walk),
        admin: has_admin.then(|| admin(&section(keys::admin::KEYS))).transpose(),
    }
}

fn runner(section: &Section<'_>) -> Result<RunnerSettings, Reported> {
    use keys::runner::{MAX_CONCURRENT, NAMESPACE, SHUTDOWN_GRACE, TIMEZONE};
    let namespace = section.need(&NAMESPACE);
    let timezone = section.need(&TIMEZONE);
    let max_concurrent = section.need(&MAX_CONCURRENT);
    let shutdown_grace = section.need(&SHUTDOWN_GRACE);
    Ok(RunnerSettings {
        namespace: namespace?,
        timezone: timezone?,
        max_concurrent: max_concurrent? as usize,
        shutdown_grace: shutdown_grace?,
    })
}

fn log(section: &Section<'_>) -> Result<LogSettings, Reported> {
    let format = section.need(&keys::log::FORMAT);
    let level = section.need(&keys::log::LEVEL);
    Ok(LogSettings { format: format?, level: level? })
}

fn lock(section: &Section<'_>) -> Result<LockSettings, Reported> {
    let url = section.read(&keys::lock::URL);
    let ttl = section.need(&keys::lock::TTL);
    Ok(LockSettings { url: url?, ttl: ttl? })
}

fn ledger(section: &Section<'_>, walk: &Walk<'_>) -> Result<LedgerSettings, Reported> {
    use keys::ledger::{MIGRATE, POOLER, RETENTION, URL};
    let url = section.read(&URL);
    let retention = section.need(&RETENTION);
    let migrate = section.need(&MIGRATE);
    let pooler = section.need(&POOLER);
    let url = url?.unwrap_or_else(|| address::default_ledger(&walk.resolver.directory));
    Ok(LedgerSettings { url, retention: retention?, migrate: migrate?, pooler: pooler? })
}

fn admin(section: &Section<'_>) -> Result<AdminSettings, Reported> {
    let listen = section.need_or(&keys::admin::LISTEN, Some(keys::admin::LISTEN_EXAMPLE));
    let token = section.read(&keys::admin::TOKEN);
    token?;
    let settings = AdminSettings { listen: listen? };
    warnings::of_admin(section, &settings);
    Ok(settings)
}
