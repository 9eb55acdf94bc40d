//! How far gaps are decided, and deciding more of them.

use runner::internal::firing::{Firing, JobName, Origin, Reason, State};
use runner::internal::ledger::{Decision, Horizon, Question};

use super::{Book, Flaw, Millis, Row, instant, millis};

impl Book {
    pub(crate) fn horizons(&self, namespace: &str, questions: &[Question]) -> Vec<Horizon> {
        let mut horizons = Vec::new();
        for Question { job: name, reach_back } in questions {
            let Some(job) = self.job(namespace, name) else { continue };
            let since = job.decided_until() - millis(*reach_back);
            let of = |row: &&Row| {
                row.is_of(namespace, name) && row.trigger_key.is_empty() && row.scheduled_at > since
            };
            let mut rows: Vec<_> =
                self.rows().filter(of).map(|row| (instant(row.scheduled_at), row.shard)).collect();
            rows.sort_unstable();
            horizons.push(Horizon { job: name.clone(), decided_until: instant(job.decided_until()), rows });
        }
        horizons.sort_by(|a, b| a.job.cmp(&b.job));
        horizons
    }

    pub(crate) fn decide(&mut self, namespace: &str, decision: &Decision, now: Millis) -> bool {
        let blind = self.has(Flaw::LeavesGaps);
        let Some(job) = self.jobs.get_mut(&(namespace.to_owned(), decision.job.clone())) else {
            return false;
        };
        if job.decided_until() != decision.decided_until.timestamp_millis() {
            return false;
        }
        job.reconciled_until = Some(decision.until.timestamp_millis());
        job.known_since = job.known_since.min(now);
        let (paused, job) = (job.paused.is_some(), job.clone());
        for gap in decision.gaps.iter().filter(|_| !blind) {
            let firing = Firing {
                job: JobName::new(&decision.job).expect("a registered job has a name"),
                scheduled_at: gap.scheduled_at,
                shard: gap.shard,
                trigger_key: String::new(),
                origin: Origin::CatchUp,
            };
            let queued = gap.run && !paused;
            let (state, reason) = match (queued, paused) {
                (true, _) => (State::Queued, Reason::CatchUp),
                (false, true) => (State::Skipped, Reason::Paused),
                (false, false) => (State::Skipped, Reason::Missed),
            };
            let row = Row {
                exclusive: queued && decision.exclusive,
                delivery: decision.delivery,
                due_at: queued.then_some(now),
                expires_at: queued.then(|| now + millis(decision.expires_in)),
                error: gap.detail.clone(),
                ..Row::new(namespace, &firing, state, reason, now)
            };
            if !job.is_pruned(row.scheduled_at) && !self.once.contains_key(&row.key()) {
                self.insert(row);
            }
        }
        true
    }
}
