//! One table `[jobs.NAME]` becomes one [`JobSpec`].

use std::sync::Arc;
use std::time::Duration;

use config::Value;

use super::Backoff;
use super::budget::{Budget, Conflict, MOST_RENEWALS, Wish};
use super::cautions;
use super::diagnose::{Findings, KeyPath, Reported, hints};
use super::duration::{self, duration, show};
use super::params::{Kinds, Params};
use super::secret::Resolver;
use super::section::Section;
use super::sections::{Sections, ttl};
use super::settings::JobSpec;
use super::text_file;
use super::trigger;
use super::value::{Fault, Table, number, table, text, truth, whole, word};
use super::zone::zone;
use crate::firing::{Delivery, JobName};

/// The keys of a job.
const KEYS: [&str; 24] = [
    "description",
    "schedule",
    "every",
    "at",
    "timezone",
    "kind",
    "params",
    "timeout",
    "ttl",
    "max_renewals",
    "kill_grace",
    "overlap",
    "misfire",
    "start_deadline",
    "max_catchup",
    "delivery",
    "max_attempts",
    "max_crashes",
    "backoff",
    "guard",
    "on_unavailable",
    "shards",
    "jitter",
    "enabled",
];

/// A firing is always a little late: with less than this it would never be in time.
const SHORTEST_DEADLINE: Duration = Duration::from_secs(1);

/// Reads jobs; holds what all of them share.
#[derive(Clone, Copy)]
pub(crate) struct Jobs<'a> {
    pub(crate) sections: &'a Sections,
    pub(crate) resolver: &'a Resolver<'a>,
    pub(crate) kinds: &'a dyn Kinds,
    pub(crate) kind_names: &'a [String],
    pub(crate) findings: &'a Findings,
}

impl Jobs<'_> {
    /// Checks `[defaults]` by itself, so that a mistake in it is found where it stands, once, and
    /// even if every job overrides it.
    pub(crate) fn check_defaults(self, defaults: &Table) {
        let section = Section::new(KeyPath::of(["defaults"]), defaults, self.findings);
        section.refuse_unknown(&KEYS);
        // What is wrong has been written down by now; there is no job to make of the rest.
        drop(self.spec(&section, None));
    }

    /// Reads one job.
    pub(crate) fn read(self, name: &str, job: &Table, defaults: &Table) -> Result<JobSpec, Reported> {
        let path = KeyPath::of(["jobs", name]);
        let section =
            Section::new(path.clone(), job, self.findings).over(KeyPath::of(["defaults"]), defaults);
        section.refuse_unknown(&KEYS);
        let name =
            JobName::new(name).map_err(|invalid| section.fault(&path, Fault::new(invalid.to_string())));
        let spec = self.spec(&section, Some(name));
        spec.and_then(|spec| spec.ok_or(Reported))
    }

    /// Every key is read before the first problem ends the reading, so that all are found.
    /// `None` for `[defaults]`, which is no job.
    fn spec(
        self,
        section: &Section<'_>,
        name: Option<Result<JobName, Reported>>,
    ) -> Result<Option<JobSpec>, Reported> {
        let shared_zone = self.sections.runner.as_ref().map(|runner| runner.timezone).map_err(|_| Reported);
        let timezone = section.read("timezone", zone).and_then(|own| own.map_or(shared_zone, Ok));
        let job_name = name.as_ref().and_then(|name| name.as_ref().ok());
        let trigger = trigger::read(section, timezone, job_name);
        let description = section.read("description", |value| text(value).map(str::to_owned));
        let kind = section.read("kind", |value| self.kind(value));
        let params = self.params(section);
        let budget = self.budget(section);
        let overlap = section.need("overlap", "", word);
        let misfire = section.need("misfire", "", word);
        let start_deadline = section.need("start_deadline", "", |value| {
            duration::at_least(value, SHORTEST_DEADLINE, "every firing would be too late")
        });
        let max_catchup = section.need("max_catchup", "", |value| whole(value, 1, 10_000));
        let delivery = section.need("delivery", "", word::<Delivery>);
        let max_attempts = section.need("max_attempts", "", |value| whole(value, 1, 1_000));
        let max_crashes = section.need("max_crashes", "", |value| whole(value, 0, 1_000));
        let backoff = section.need("backoff", "", backoff);
        let guard = section.need("guard", "", word);
        let on_unavailable = section.need("on_unavailable", "", word);
        let shards = section.need("shards", "", |value| whole(value, 1, 1_024));
        let jitter = section.need("jitter", "", duration);
        let enabled = section.need("enabled", "", truth);

        let combined = [
            exclusive_attempts(section, delivery, max_attempts),
            self.within_retention(section, start_deadline, jitter),
        ];
        let Some(name) = name else { return Ok(None) };
        let trigger = trigger.and_then(|trigger| {
            let hint = "write schedule = \"*/5 * * * *\", every = \"30s\" or at = 2026-06-01T00:00:00Z";
            trigger.ok_or_else(|| {
                section.fault(&section.path(), Fault::new("the job has no schedule").hint(hint))
            })
        });
        let hint = format!("the kinds are {}", self.kind_names.join(", "));
        let kind = kind.and_then(|kind| match kind {
            Some(kind) => Ok(kind),
            None => section.need("kind", &hint, |value| self.kind(value)),
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
        cautions::of_job(section, &spec, trigger.key);
        Ok(Some(spec))
    }

    fn kind(self, value: &Value) -> Result<String, Fault> {
        let kind = text(value)?;
        if self.kind_names.iter().any(|known| known == kind) {
            return Ok(kind.to_owned());
        }
        let hint = match hints::nearest(kind, self.kind_names.iter().map(String::as_str)) {
            Some(nearest) => format!("did you mean \"{nearest}\"?"),
            None => format!("the kinds are {}", self.kind_names.join(", ")),
        };
        Err(Fault::new(format!("unknown kind {kind:?}")).hint(hint))
    }

    /// The params with their secrets in place; `None` when there are none.
    fn params(self, section: &Section<'_>) -> Result<Option<toml::Table>, Reported> {
        let Some(params) = section.read("params", table)? else { return Ok(None) };
        self.resolver.resolve_within(params).map(Some).map_err(|faults| self.report(section, faults))
    }

    fn report(self, section: &Section<'_>, faults: Vec<Fault>) -> Reported {
        let path = section.place("params");
        faults.into_iter().fold(Reported, |_, fault| section.fault(&path, fault))
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
        let unread = text_file::put_in_place(&mut params, self.kinds.files(kind), &self.resolver.directory);
        if !unread.is_empty() {
            return Err(self.report(section, unread));
        }
        match self.kinds.check(kind, &params) {
            Ok(()) => Ok(Params::from(params)),
            Err(problem) => {
                let path = section.place("params").below(KeyPath::parse(&problem.path).segments());
                let is_key = problem.is_about_key();
                let fault = Fault { is_key, ..Fault::new(problem.message).maybe_hint(problem.hint) };
                Err(section.fault(&path, fault))
            }
        }
    }

    fn budget(self, section: &Section<'_>) -> Result<Budget, Reported> {
        let shared_ttl = self.sections.lock.as_ref().map(|lock| lock.ttl).map_err(|_| Reported);
        let ttl = section.read("ttl", ttl).and_then(|own| own.map_or(shared_ttl, Ok));
        let timeout = section.read("timeout", |value| {
            duration::at_least(value, Duration::from_millis(1), "every run would be cancelled at once")
        });
        let max_renewals = section.read("max_renewals", |value| whole(value, 0, MOST_RENEWALS));
        let kill_grace = section.read("kill_grace", duration);
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
            "a firing may start {} after its moment, but its row is kept for {} only",
            show(window),
            show(ledger.retention)
        );
        Err(section.problem(key, message, "raise ledger.retention"))
    }
}

/// What of the budget does not fit, and what would.
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
            format!("max_renewals = {cap} would do, or leave it out and it follows from the timeout"),
        ),
        Conflict::Uncoverable => section.problem(
            "timeout",
            format!("the lock cannot cover the timeout: with ttl {ttl} it would take more than {MOST_RENEWALS} renewals"),
            "raise the ttl, or lower the timeout",
        ),
    }
}

/// A run that must not happen again cannot be tried again.
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
        _ => Ok(()),
    }
}

fn backoff(value: &Value) -> Result<Backoff, Fault> {
    const KEYS: [&str; 3] = ["initial", "max", "factor"];
    let table = table(value)?;
    if let Some(unknown) = table.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(Fault::unknown_key(unknown, &KEYS));
    }
    let span = |key: &str, usual: u64| match table.get(key) {
        Some(value) => duration(value).map_err(|fault| fault.under(key)),
        None => Ok(Duration::from_secs(usual)),
    };
    let (initial, max) = (span("initial", 1)?, span("max", 300)?);
    let factor = match table.get("factor") {
        Some(value) => number(value, 1.0, 100.0).map_err(|fault| fault.under("factor"))?,
        None => 2.0,
    };
    if initial.is_zero() {
        return Err(Fault::new("a retry without any wait is a hot loop")
            .hint("write \"1s\"")
            .under("initial"));
    }
    if max < initial {
        let message = format!("max is shorter than initial, which is {}", show(initial));
        return Err(Fault::new(message).under(if table.contains_key("max") { "max" } else { "initial" }));
    }
    Ok(Backoff::new(initial, max, factor))
}

/// Puts the jobs in the order of their names, which is the same on every replica.
pub(crate) fn in_order(mut jobs: Vec<JobSpec>) -> Vec<Arc<JobSpec>> {
    jobs.sort_by(|a, b| a.name.cmp(&b.name));
    jobs.into_iter().map(Arc::new).collect()
}
