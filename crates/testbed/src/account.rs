//! Compares rows and effects with each other and with the timetable.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;

use crate::rows::{assert_no_gap, instant, number, state, states};
use crate::{Deployment, Effect, EffectKind};

/// The rows and the effects of a job.
#[derive(Debug)]
pub struct Account {
    /// Its name.
    pub job: String,
    /// Its rows in the ledger, oldest instant first.
    pub rows: Vec<Value>,
    /// What its runs did.
    pub effects: Vec<Effect>,
}

impl Account {
    /// Reads them after all replicas have ended, and asserts what must hold whatever has happened: one row per
    /// firing, and no gap where a firing is due every `period`; no run without a row; no fence and no attempt
    /// twice; no overlap; every run that the ledger calls succeeded has ended.
    #[track_caller]
    pub fn of(deployment: &Deployment, job: &str, period: Duration) -> Self {
        let effects = deployment.effects();
        assert_eq!(effects.overlaps(job), Vec::<String>::new(), "{job} overlaps itself");
        let rows = deployment.history(job);
        assert_no_gap(&rows, period);
        let effects = effects.all().into_iter().filter(|effect| effect.job == job).collect();
        let account = Self { job: job.to_owned(), rows, effects };
        account.assert_rows_and_effects_agree();
        account
    }

    #[track_caller]
    fn assert_rows_and_effects_agree(&self) {
        let rows: BTreeMap<_, _> = self.rows.iter().map(|row| (instant(row, "scheduled_at"), row)).collect();
        assert_eq!(rows.len(), self.rows.len(), "two rows for one firing");
        let (mut fences, mut attempts) = (BTreeSet::new(), BTreeSet::new());
        for start in self.of_kind(EffectKind::Start) {
            let row =
                rows.get(&start.scheduled_at).unwrap_or_else(|| panic!("a run without a row: {start:?}"));
            assert!(u64::from(start.attempt) <= number(row, "attempt"), "{start:?} does not belong to {row}");
            assert!(fences.insert(start.fence), "a fence was used twice: {start:?}");
            assert!(
                attempts.insert((start.scheduled_at, start.attempt)),
                "an attempt started twice: {start:?} of {row}"
            );
        }
        let ended: BTreeSet<_> = self.of_kind(EffectKind::End).map(|end| end.fence as u64).collect();
        for row in self.rows.iter().filter(|row| row["state"] == "succeeded") {
            assert!(ended.contains(&number(row, "fence")), "a run without an end: {row}");
        }
    }

    /// The effects of this kind.
    pub fn of_kind(&self, kind: EffectKind) -> impl Iterator<Item = &Effect> {
        self.effects.iter().filter(move |effect| effect.kind == kind)
    }

    /// Asserts that every firing has succeeded at its first attempt, and has one effect.
    #[track_caller]
    pub fn assert_all_succeeded_at_once(&self) {
        self.assert_states(&["succeeded"]);
        self.assert_one_attempt_each();
    }

    /// Asserts that all succeeded firings did so at their first attempt, and that nothing else was started.
    #[track_caller]
    pub fn assert_one_attempt_each(&self) {
        let succeeded: Vec<_> = self.rows.iter().filter(|row| row["state"] == "succeeded").collect();
        for row in &succeeded {
            assert_eq!(row["attempt"], 1, "{row}");
        }
        assert_eq!(self.of_kind(EffectKind::Start).count(), succeeded.len());
    }

    /// No row says anything else.
    #[track_caller]
    pub fn assert_states(&self, legal: &[&str]) {
        assert!(!self.rows.is_empty(), "{} has not fired at all", self.job);
        let other = |row: &&Value| !legal.contains(&state(row).as_str());
        let other: Vec<_> = self.rows.iter().filter(other).collect();
        assert!(other.is_empty(), "{:?}: {other:#?}", states(&self.rows));
    }

    /// How long after its instant each firing was started, by the time in its effects.
    pub fn lateness(&self) -> BTreeMap<DateTime<Utc>, TimeDelta> {
        let mut late = BTreeMap::new();
        for start in self.of_kind(EffectKind::Start) {
            late.entry(start.scheduled_at).or_insert(start.at - start.scheduled_at);
        }
        late
    }

    /// Asserts that every start was at most `limit` after its instant, and none was early.
    #[track_caller]
    pub fn assert_on_time(&self, limit: TimeDelta) {
        let early = TimeDelta::milliseconds(-100);
        let late: Vec<_> =
            self.lateness().into_iter().filter(|(_, late)| *late > limit || *late < early).collect();
        assert!(late.is_empty(), "{}: not within {limit}: {late:#?}", self.job);
    }
}
