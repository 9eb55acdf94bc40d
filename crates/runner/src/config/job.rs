//! One table `[jobs.NAME]` becomes one [`JobSpec`].

use std::sync::Arc;
use std::time::Duration;

use super::budget::{Budget, Conflict, MOST_RENEWALS, Wish};
use super::diagnose::{KeyPath, Reported};
use super::keys::{backoff as backoff_keys, job as key};
use super::params::Params;
use super::section::Section;
use super::sections::Sections;
use super::settings::JobSpec;
use super::text_file;
use super::trigger;
use super::value::{BadValue, Table};
use super::walk::Walk;
use super::warnings;
use crate::firing::{Delivery, JobName};
use crate::rules::Backoff;
use crate::schedule::show_duration as show;

/// Reads jobs; holds what all of them share.
#[derive(Clone, Copy)]
pub(crate) struct Jobs<'a> {
    pub(crate) sections: &'a Sections,
    pub(crate) walk: &'a Walk<'a>,
}

impl Jobs<'_> {
    /// Checks `[defaults]` by itself, so that a mistake in it is found where it stands, once, and
    /// even if every job overrides it.
    pub(crate) fn check_defaults(self, defaults: &Table) {
        let section = Section::new(KeyPath::of(["defaults"]), defaults, key::KEYS, self.walk);
        // What is wrong has been reported by now; `[defaults]` makes no job.
        drop(self.spec(&section, None));
    }

    /// Reads one job.
    pub(crate) fn read(self, name: &str, job: &Table, defaults: &Table) -> Result<JobSpec, Reported> {
        let path = KeyPath::of(["jobs", name]);
        let section = Section::new(path.clone(), job, key::KEYS, self.walk);
        let section = section.over(KeyPath::of(["defaults"]), defaults);
        let name =
            JobName::new(name).map_err(|invalid| section.fault(&path, BadValue::new(invalid.to_string())));
        let spec = self.spec(&section, Some(name));
        spec.and_then(|spec| spec.ok_or(Reported))
    }

    /// Every key is read before the first problem ends the reading, so that all problems are found.
    /// `None` for `[defaults]`, which is no job.
    fn spec(
        self,
        section: &Section<'_>,
        name: Option<Result<JobName, Reported>>,
    ) -> Result<Option<JobSpec>, Reported> {
        let shared_zone = self.sections.runner.as_ref().map(|runner| runner.timezone).map_err(|_| Reported);
        let timezone = section.read(&key::TIMEZONE).and_then(|own| own.map_or(shared_zone, Ok));
        let job_name = name.as_ref().and_then(|name| name.as_ref().ok());
        let trigger = trigger::read(section, timezone, job_name);
        let description = section.read(&key::DESCRIPTION);
        let kind = section.read(&key::KIND);
        let params = self.params(section);
        let budget = self.budget(section);
        let overlap = section.need(&key::OVERLAP);
        let misfire = section.need(&key::MISFIRE);
        let start_deadline = section.need(&key::START_DEADLINE);
        let max_catchup = section.need(&key::MAX_CATCHUP);
        let delivery = section.need(&key::DELIVERY);
        let max_attempts = section.need(&key::MAX_ATTEMPTS);
        let max_crashes = section.need(&key::MAX_CRASHES);
        let backoff = backoff(section);
        let guard = section.need(&key::GUARD);
        let on_unavailable = section.need(&key::ON_UNAVAILABLE);
        let shards = section.need(&key::SHARDS);
        let jitter = section.need(&key::JITTER);
        let enabled = section.need(&key::ENABLED);

        let combined = [
            exclusive_attempts(section, delivery, max_attempts),
            self.within_retention(section, start_deadline, jitter),
        ];
        let Some(name) = name else { return Ok(None) };
        let trigger = trigger.and_then(|trigger| {
            let hint = "write schedule = \"*/5 * * * *\", every = \"30s\" or at = 2026-06-01T00:00:00Z";
            trigger.ok_or_else(|| {
                section.fault(&section.path(), BadValue::new("the job has no schedule").hint(hint))
            })
        });
        let kind = kind.and_then(|kind| match kind {
            Some(kind) => Ok(kind),
            None => {
                let hint = format!("the kinds are {}", self.walk.kind_names.join(", "));
                section.need_or(&key::KIND, Some(&hint))
            }
        });
        let params = self.accepted(section, &kind, params);
        for rule in combined {
            rule?;
        }
        let trigger = trigger?;
        let spec = JobSpec {
            name: name?,
            description: description?,
            timetable: trigger.timetable,
            schedule_text: trigger.text,
            timezone: timezone?,
            kind: kind?,
            params: params?,
            budget: budget?,
            overlap: overlap?,
            misfire: misfire?,
            start_deadline: start_deadline?,
            max_catchup: max_catchup?,
            delivery: delivery?,
            max_attempts: max_attempts?,
            max_crashes: max_crashes?,
            backoff: backoff?,
            guard: guard?,
            on_unavailable: on_unavailable?,
            shards: shards?,
            jitter: jitter?,
            enabled: enabled?,
        };
        warnings::of_job(section, &spec, trigger.key);
        Ok(Some(spec))
    }

    /// The params with their secrets in place; `None` when there are none.
    fn params(self, section: &Section<'_>) -> Result<Option<toml::Table>, Reported> {
        let Some(params) = section.read(&key::PARAMS)? else { return Ok(None) };
        let resolved = self.walk.resolver.resolve_within(&params);
        resolved.map(Some).map_err(|faults| report_params(section, faults))
    }

    /// The params as the job's kind takes them.
    fn accepted(
        self,
        section: &Section<'_>,
        kind: &Result<String, Reported>,
        params: Result<Option<toml::Table>, Reported>,
    ) -> Result<Params, Reported> {
        let mut params = params?.unwrap_or_default();
        let kind = kind.as_ref().map_err(|_| Reported)?;
        let Walk { kinds, resolver, .. } = self.walk;
        let unread = text_file::put_in_place(&mut params, kinds.files(kind), &resolver.directory);
        if !unread.is_empty() {
            return Err(report_params(section, unread));
        }
        let params = Params::at(section.place(key::PARAMS.name()), params);
        match kinds.check(kind, params.table()) {
            Ok(()) => Ok(params),
            Err(problem) => {
                let path = params.place_of(&problem);
                let is_key = problem.is_about_key();
                let fault = BadValue { is_key, ..BadValue::new(problem.message).maybe_hint(problem.hint) };
                Err(section.fault(&path, fault))
            }
        }
    }

    fn budget(self, section: &Section<'_>) -> Result<Budget, Reported> {
        let shared_ttl = self.sections.lock.as_ref().map(|lock| lock.ttl).map_err(|_| Reported);
        let ttl = section.read(&key::TTL).and_then(|own| own.map_or(shared_ttl, Ok));
        let timeout = section.read(&key::TIMEOUT);
        let max_renewals = section.read(&key::MAX_RENEWALS);
        let kill_grace = section.read(&key::KILL_GRACE);
        let wish =
            Wish { ttl: ttl?, timeout: timeout?, max_renewals: max_renewals?, kill_grace: kill_grace? };
        Budget::plan(wish).map_err(|conflict| explain(section, wish, conflict))
    }

    /// Rows must outlive the time in which a replica may still claim their firing.
    fn within_retention(
        self,
        section: &Section<'_>,
        start_deadline: Result<Duration, Reported>,
        jitter: Result<Duration, Reported>,
    ) -> Result<(), Reported> {
        let Ok(ledger) = &self.sections.ledger else { return Ok(()) };
        let window = start_deadline? + jitter?;
        if window <= ledger.retention {
            return Ok(());
        }
        let key = if section.sets("start_deadline") { "start_deadline" } else { "jitter" };
        let message = format!(
            "a firing may start {} after it was due, but its row is kept for {} only",
            show(window),
            show(ledger.retention)
        );
        Err(section.problem(key, message, "raise ledger.retention"))
    }
}

/// Reports what of the budget does not fit, and what would.
fn explain(section: &Section<'_>, wish: Wish, conflict: Conflict) -> Reported {
    let ttl = show(wish.ttl);
    match conflict {
        Conflict::GraceTooLong { most } => section.problem(
            "kill_grace",
            format!("kill_grace is at most a third of the ttl, which is {ttl}"),
            format!("write \"{}\" or less, or raise the ttl", show(most)),
        ),
        Conflict::Uncovered { cap, longest } => section.problem(
            if section.has_itself("timeout") { "timeout" } else { "max_renewals" },
            format!(
                "the lock cannot cover the timeout: with ttl {ttl} and {} renewals a run has {} at most",
                wish.max_renewals.unwrap_or_default(),
                show(longest)
            ),
            format!("write max_renewals = {cap}, or leave it out: it then follows from the timeout"),
        ),
        Conflict::Uncoverable => section.problem(
            "timeout",
            format!("the lock cannot cover the timeout: with ttl {ttl} it would take more than {MOST_RENEWALS} renewals"),
            "raise the ttl, or lower the timeout",
        ),
    }
}

/// A firing that must not run twice cannot be retried.
fn exclusive_attempts(
    section: &Section<'_>,
    delivery: Result<Delivery, Reported>,
    max_attempts: Result<u32, Reported>,
) -> Result<(), Reported> {
    match (delivery?, max_attempts?) {
        (Delivery::AtMostOnce, attempts) if attempts > 1 => Err(section.problem(
            "max_attempts",
            format!("delivery = \"at_most_once\" excludes max_attempts = {attempts}"),
            "write max_attempts = 1, or delivery = \"at_least_once\"",
        )),
        (Delivery::AtMostOnce | Delivery::AtLeastOnce, _) => Ok(()),
    }
}

fn backoff(section: &Section<'_>) -> Result<Backoff, Reported> {
    let section = section.inner(&key::BACKOFF, backoff_keys::KEYS)?;
    let initial = section.need(&backoff_keys::INITIAL);
    let max = section.need(&backoff_keys::MAX);
    let factor = section.need(&backoff_keys::FACTOR);
    let (initial, max, factor) = (initial?, max?, factor?);
    if max < initial {
        let message = format!("max is shorter than initial, which is {}", show(initial));
        let key = if section.sets("max") { "max" } else { "initial" };
        return Err(section.fault(&section.place(key), BadValue::new(message)));
    }
    Ok(Backoff::new(initial, max, factor))
}

/// Reports several faults of the params, at their places.
fn report_params(section: &Section<'_>, faults: Vec<BadValue>) -> Reported {
    let path = section.place(key::PARAMS.name());
    faults.into_iter().fold(Reported, |_, fault| section.fault(&path, fault))
}

/// Puts the jobs in the order of their names, which is the same on every replica.
pub(crate) fn in_order(mut jobs: Vec<JobSpec>) -> Vec<Arc<JobSpec>> {
    jobs.sort_by(|a, b| a.name.cmp(&b.name));
    jobs.into_iter().map(Arc::new).collect()
}
