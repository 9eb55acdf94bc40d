//! Loads a file: the result is a configuration, or everything that is wrong with the file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use toml::de::DeTable;

use super::address::directory_of;
use super::diagnose::{
    Collected, ConfigErrors, Findings, KeyPath, Problem, Reported, SourceMap, Warning,
    syntax::{self, Health, Parsed},
};
use super::document;
use super::environment::Environment;
use super::job::{self, Jobs};
use super::keys::KNOWN_KEYS;
use super::layers;
use super::params::Kinds;
use super::secret::Resolver;
use super::sections::{self, Sections};
use super::settings::{Config, JobSpec};
use super::value::Table;
use super::walk::{CheckLedgerUrl, Walk};
use super::warnings;

impl Config {
    /// Reads `path`, puts it between the defaults and `environment`, resolves its secrets and checks
    /// all of it. `kinds` checks each job's params, `check_ledger_url` the ledger's address. Asks no
    /// server.
    ///
    /// # Errors
    /// [`ConfigErrors`] with everything that is wrong, not only the first thing.
    pub fn load(
        path: &Path,
        environment: &Environment,
        kinds: &dyn Kinds,
        check_ledger_url: CheckLedgerUrl<'_>,
    ) -> Result<Self, ConfigErrors> {
        let findings = Findings::default();
        let text = document::read(path, &findings);
        let readable = text.is_ok();
        let source = SourceMap::new(path.display().to_string(), text.unwrap_or_default(), KNOWN_KEYS);
        let text = source.text();
        let Parsed { tree, health, left_out } = syntax::parse(&text, KNOWN_KEYS, &findings);
        let walked = (readable && health != Health::Broken).then(|| {
            let resolver = Resolver { environment, directory: directory_of(path), findings: &findings };
            let kind_names = kinds.names();
            walk(&text, &tree, &Walk { findings: &findings, resolver, kinds, kind_names, check_ledger_url })
        });
        let (walked, variables) = match walked {
            Some((walked, variables)) => (Some(walked), variables),
            None => (None, BTreeMap::new()),
        };

        let Collected { problems, warnings, secrets, secret_env } = findings.into_collected();
        let source = source.with_variables(variables).with_secrets(secrets);
        let mask = source.mask(&tree).hiding(left_out);
        let mask = if health == Health::Broken { mask.strict() } else { mask };
        let problems = problems.into_iter().map(|finding| source.place(&tree, &mask, finding)).collect();
        let warnings = warnings.into_iter().map(|finding| source.place(&tree, &mask, finding)).collect();
        let config = walked.and_then(|walked| walked.into_config(warnings, secret_env, source.clone()));
        match (ConfigErrors::new(source.file(), problems), config) {
            (None, Some(config)) => Ok(config),
            (errors, _) => Err(errors.unwrap_or_else(|| ConfigErrors::unexplained(source.file()))),
        }
    }
}

/// What was read from the file.
struct Walked {
    sections: Sections,
    jobs: Vec<Result<JobSpec, Reported>>,
}

/// Reads every section and every job, whatever is wrong with the others.
fn walk(text: &str, tree: &DeTable<'_>, walk: &Walk<'_>) -> (Walked, BTreeMap<KeyPath, String>) {
    let findings = walk.findings;
    layers::refuse_unknown_sections(tree, findings);
    let layers = layers::layer(tree, walk.resolver.environment, findings);
    let sections = sections::read(&layers, walk);
    let empty = Table::new();
    let defaults = layers.sections.get("defaults").unwrap_or(&empty);
    let reader = Jobs { sections: &sections, walk };
    reader.check_defaults(defaults);
    let mut jobs = Vec::new();
    if document::require_jobs(text, tree, findings).is_ok() {
        for (name, table) in layers::jobs(tree, findings) {
            let table = document::values(table, &KeyPath::of(["jobs", name]), findings);
            jobs.push(reader.read(name, &table, defaults));
        }
        warnings::of_jobs(&jobs, findings);
    }
    if let (Ok(lock), Ok(ledger)) = (&sections.lock, &sections.ledger) {
        warnings::of_layers(lock, ledger, findings);
    }
    (Walked { sections, jobs }, layers.variables)
}

impl Walked {
    /// The configuration, if no part of it is missing.
    fn into_config(
        self,
        warnings: Vec<Problem>,
        secret_env: BTreeSet<String>,
        source: SourceMap,
    ) -> Option<Config> {
        let Sections { runner, log, lock, ledger, admin } = self.sections;
        let jobs: Result<Vec<JobSpec>, Reported> = self.jobs.into_iter().collect();
        Some(Config {
            runner: runner.ok()?,
            log: log.ok()?,
            lock: lock.ok()?,
            ledger: ledger.ok()?,
            admin: admin.ok()?,
            jobs: job::in_order(jobs.ok()?),
            warnings: Warning::in_order(warnings),
            secret_env,
            source,
        })
    }
}
