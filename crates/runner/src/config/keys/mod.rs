//! The one table of keys: everything that jobs.toml may say.
//!
//! A row holds all that is known of a key: how its value is read, its default, whether a message may
//! quote it, which values are built, and its line in docs/configuration.md. The check for unknown
//! keys, the layer of defaults, the refusal of what is not built, the masking of quoted lines and the
//! JSON of `check` all come from the rows.
//!
//! To add a key, add a row here and a field to the settings, and read the one into the other. The
//! tests then ask for the line in the page.

pub(crate) mod admin;
pub(crate) mod backoff;
pub(crate) mod job;
pub(crate) mod ledger;
pub(crate) mod lock;
pub(crate) mod log;
mod row;
pub(crate) mod runner;
#[cfg(test)]
mod tests;

use super::diagnose::{Exposure, KnownKeys};
use super::settings::JobSpec;
pub(crate) use row::{DefaultValue, Key, Keys};

/// The sections that stand in a file once. The environment reaches these and no others: `config`
/// lower-cases names, and a variable must not be able to add a job.
pub(crate) const SECTIONS: [Keys; 6] =
    [runner::KEYS, log::KEYS, lock::KEYS, ledger::KEYS, admin::KEYS, job::KEYS];

/// Tables that stand as the value of a key.
const INNER: [Keys; 1] = [backoff::KEYS];

/// What may be shown of which key, for the part that draws problems.
pub(crate) const KNOWN_KEYS: KnownKeys = KnownKeys { is_table, exposure };

/// Whether a name stands at the top of the file: as a section, or as the table of all jobs.
fn is_table(name: &str) -> bool {
    name == "jobs" || is_section(name)
}

/// Whether a name is that of a section.
pub(crate) fn is_section(name: &str) -> bool {
    SECTIONS.iter().any(|section| section.name == name)
}

/// Whether a message may quote the value of a key; `None` when no table has the key. The same name
/// has the same answer in every table: in a broken file it is not known which table a line belongs to.
fn exposure(key: &str) -> Option<Exposure> {
    let tables = SECTIONS.iter().chain(&INNER);
    tables.filter_map(|keys| keys.row(key)).map(|row| row.exposure).next()
}

/// The defaults of all sections, as a file would say them.
pub(crate) fn defaults() -> String {
    let mut text = String::new();
    for section in SECTIONS {
        let values = section.defaults();
        // A section that is there without a key would count as written.
        if !values.is_empty() {
            let header = section.name;
            text.push_str(&format!("[{header}]\n{values}"));
        }
    }
    text
}

/// What a loaded job has for each of its keys, under the names of `check`'s JSON.
pub(crate) fn job_as_json(job: &JobSpec) -> serde_json::Map<String, serde_json::Value> {
    let shown = job::KEYS.rows.iter().filter_map(|row| row.json);
    shown.map(|(name, show)| (name.to_owned(), show(job))).collect()
}

impl Keys {
    /// The defaults of the table's keys, one line each, as a file would say them.
    pub(crate) fn defaults(&self) -> String {
        let mut text = String::new();
        for row in self.rows {
            match row.default {
                DefaultValue::Toml(value) => text.push_str(&format!("{} = {value}\n", row.name)),
                DefaultValue::Words(_) => {}
            }
        }
        text
    }
}
