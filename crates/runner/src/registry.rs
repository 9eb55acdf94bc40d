//! From a kind's name to the code that runs it.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::config::{Config, ConfigErrors, JobSpec, Kinds, ParamProblem, read_params};
use crate::job::{ErasedJob, Job};
use crate::kinds::{Command, CommandParams, Http, HttpParams, Sql, SqlParams};

/// A job of the file together with the code that runs it.
#[derive(Clone)]
pub(crate) struct BoundJob {
    /// What the file says.
    pub(crate) spec: Arc<JobSpec>,
    /// What runs.
    pub(crate) work: Arc<dyn ErasedJob>,
    /// Whether its kind comes with the runner: such code never blocks a thread.
    pub(crate) stock: bool,
}

impl fmt::Debug for BoundJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoundJob").field("name", &self.spec.name).field("kind", &self.spec.kind).finish()
    }
}

/// The variables that hold secrets of the configuration: a command must not inherit them.
type SecretVariables = BTreeSet<String>;
type Check = dyn Fn(&toml::Table) -> Result<(), ParamProblem> + Send + Sync;
type Make = dyn Fn(&toml::Table, &SecretVariables) -> Result<Arc<dyn ErasedJob>, ParamProblem> + Send + Sync;

/// One kind, with its types forgotten.
struct Kind {
    stock: bool,
    /// Params that name a file beside jobs.toml.
    files: &'static [&'static str],
    check: Box<Check>,
    make: Box<Make>,
}

/// The kinds of one binary.
#[derive(Default)]
pub(crate) struct Registry {
    kinds: BTreeMap<String, Kind>,
}

impl Registry {
    /// The kinds that every runner has.
    #[must_use]
    pub(crate) fn stock() -> Self {
        let mut registry = Self::default();
        registry.insert("command", true, |params: CommandParams, secrets| {
            Ok(Command::new(params, secrets.iter().cloned()))
        });
        registry.insert("http", true, |params: HttpParams, _| Ok(Http::new(params)));
        registry.insert("sql", true, |params: SqlParams, _| Ok(Sql::new(params))).files = &["file"];
        registry
    }

    /// Adds a kind, or replaces the one of that name.
    pub(crate) fn add<P, J, F>(&mut self, name: &str, make: F)
    where
        P: DeserializeOwned,
        J: Job,
        F: Fn(P) -> Result<J, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    {
        self.insert(name, false, move |params, _| make(params));
    }

    fn insert<P, J, F>(&mut self, name: &str, stock: bool, make: F) -> &mut Kind
    where
        P: DeserializeOwned,
        J: Job,
        F: Fn(P, &SecretVariables) -> Result<J, Box<dyn Error + Send + Sync>> + Send + Sync + 'static,
    {
        let kind = Kind {
            stock,
            files: &[],
            check: Box::new(|params| read_params::<P>(params).map(drop)),
            make: Box::new(move |params, secrets| {
                let job = make(read_params::<P>(params)?, secrets)
                    .map_err(|error| ParamProblem::new("", error.to_string()))?;
                Ok(Arc::new(job))
            }),
        };
        self.kinds.entry(name.to_owned()).insert_entry(kind).into_mut()
    }

    /// Joins every job of the file with its code.
    ///
    /// # Errors
    /// All [`ConfigErrors`] of params that their kinds refuse.
    pub(crate) fn bind(&self, config: &Config) -> Result<Vec<Arc<BoundJob>>, ConfigErrors> {
        let mut bound = Vec::with_capacity(config.jobs.len());
        let mut problems = Vec::new();
        for spec in &config.jobs {
            let made = match self.kinds.get(&spec.kind) {
                Some(kind) => (kind.make)(spec.params.table(), &config.secret_env).map(|work| BoundJob {
                    spec: spec.clone(),
                    work,
                    stock: kind.stock,
                }),
                None => Err(ParamProblem::new("", format!("there is no kind {:?}", spec.kind))),
            };
            match made {
                Ok(job) => bound.push(Arc::new(job)),
                Err(problem) => problems.push(config.param_problem(spec, &problem)),
            }
        }
        match ConfigErrors::new(config.source.file(), problems) {
            Some(errors) => Err(errors),
            None => Ok(bound),
        }
    }
}

impl Kinds for Registry {
    fn names(&self) -> Vec<String> {
        self.kinds.keys().cloned().collect()
    }

    fn files(&self, kind: &str) -> &'static [&'static str] {
        self.kinds.get(kind).map_or(&[], |kind| kind.files)
    }

    fn check(&self, kind: &str, params: &toml::Table) -> Result<(), ParamProblem> {
        self.kinds.get(kind).map_or(Ok(()), |kind| (kind.check)(params))
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.kinds.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Environment, Place};
    use crate::job::{JobContext, JobError};

    struct Report;

    impl Job for Report {
        async fn run(&self, _: &JobContext) -> Result<(), JobError> {
            Ok(())
        }
    }

    #[derive(serde::Deserialize)]
    struct ReportParams {
        rows: u32,
    }

    /// The place of the one problem of a file whose kind wants at least two rows.
    fn refused(text: &str) -> (String, usize) {
        let mut registry = Registry::default();
        registry.add("report", |params: ReportParams| match params.rows {
            0 | 1 => Err("too few rows".into()),
            _ => Ok(Report),
        });
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("jobs.toml");
        std::fs::write(&path, text).expect("written");
        let config = Config::load(&path, &Environment::default(), &registry, &|_| Ok(())).expect("loaded");
        let errors = registry.bind(&config).expect_err("refused");
        match errors.problems() {
            [problem] => match problem.place {
                Place::Line { line, .. } => (problem.key.clone(), line),
                ref other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn params_that_a_kind_refuses_are_blamed_where_they_stand() {
        let job = "[jobs.a]\nevery = \"5s\"\nkind = \"report\"\n";
        let own = format!("{job}params = {{ rows = 1 }}\n");
        assert_eq!(refused(&own), ("jobs.a.params".to_owned(), 4));
        let inherited = format!("[defaults]\nparams = {{ rows = 1 }}\n{job}");
        assert_eq!(refused(&inherited), ("defaults.params".to_owned(), 2));
    }
}
