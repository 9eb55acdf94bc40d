//! Jobs, the queue, and what has ended long ago.

use std::time::Duration;

use runner::internal::firing::{Reason, State};
use runner::internal::ledger::{Due, Enqueue, Enqueued, Expired, FiringId, JobRegistration, Running};

use runner::internal::rules::why_not_enqueued;

use super::{Book, Job, Millis, Row, millis};

impl Book {
    pub(crate) fn register(&mut self, namespace: &str, jobs: &[JobRegistration], now: Millis) {
        for JobRegistration { name, spec_hash } in jobs {
            let fresh = || Job {
                name: name.clone(),
                known_since: now,
                reconciled_until: None,
                spec_hash: spec_hash.clone(),
                paused: None,
                pruned_before: None,
            };
            let job = self.jobs.entry((namespace.to_owned(), name.clone())).or_insert_with(fresh);
            if job.spec_hash != *spec_hash {
                (job.known_since, job.spec_hash) = (now, spec_hash.clone());
            }
        }
    }

    pub(crate) fn enqueue(&mut self, namespace: &str, enqueue: &Enqueue, now: Millis) -> Enqueued {
        let firing = &enqueue.firing;
        if let Some(no) = why_not_enqueued(&self.view(namespace, firing, now), enqueue) {
            return no;
        }
        Enqueued::Queued(self.insert(Row {
            exclusive: enqueue.exclusive,
            delivery: enqueue.delivery,
            due_at: Some(now + millis(enqueue.due_in)),
            expires_at: Some(now + millis(enqueue.expires_in)),
            ..Row::new(namespace, firing, State::Queued, enqueue.reason, now)
        }))
    }

    pub(crate) fn due(&self, namespace: &str, jobs: &[String], limit: u32, now: Millis) -> Vec<Due> {
        let can_be_claimed = |row: &&Row| {
            row.state == State::Queued
                && row.namespace == namespace
                && row.due_at.is_some_and(|due_at| due_at <= now)
                && row.expires_at.is_some_and(|expires_at| now < expires_at)
                && jobs.iter().any(|job| job == row.job.as_str())
                && self.job(namespace, row.job.as_str()).is_some_and(|job| job.paused.is_none())
                && !(row.exclusive && self.blocker(namespace, row.job.as_str(), row.shard).is_some())
        };
        let mut due: Vec<&Row> = self.rows().filter(can_be_claimed).collect();
        due.sort_by_key(|row| (row.due_at, row.scheduled_at, row.id));
        due.into_iter().take(limit as usize).map(Row::due).collect()
    }

    pub(crate) fn expire(&mut self, namespace: &str, limit: u32, now: Millis) -> Vec<Expired> {
        let over = |row: &&Row| {
            row.namespace == namespace
                && row.state == State::Queued
                && row.expires_at.is_some_and(|expires_at| expires_at <= now)
        };
        let mut over: Vec<_> = self.rows().filter(over).map(|row| (row.expires_at, row.id)).collect();
        over.sort_unstable();
        let mut expired = Vec::new();
        for (_, id) in over.into_iter().take(limit as usize) {
            let Some(row) = self.rows.get_mut(&id) else { continue };
            let (state, reason) = if row.attempt == 0 {
                (State::Skipped, Reason::Missed)
            } else {
                (State::Failed, Reason::Expired)
            };
            (row.state, row.reason, row.finished_at) = (state, Some(reason), Some(now));
            expired.push(Expired { id, job: row.job.to_string(), state, reason });
            self.touched.push(id);
        }
        expired
    }

    pub(crate) fn all_running(&self, namespace: &str, now: Millis) -> Vec<Running> {
        let of = |row: &&Row| row.namespace == namespace && row.state == State::Running;
        let mut running: Vec<_> = self.rows().filter(of).filter_map(|row| row.seen_running(now)).collect();
        running.sort_by_key(|seen| (seen.lease_until, seen.run.id));
        running
    }

    pub(crate) fn prune(&mut self, namespace: &str, retention: Duration, now: Millis) -> u64 {
        let cutoff = now - millis(retention);
        let mut removed = 0;
        for ((of, _), job) in &mut self.jobs {
            if of != namespace {
                continue;
            }
            let old = |row: &&Row| {
                row.is_of(namespace, &job.name)
                    && row.scheduled_at < cutoff
                    && row.state.is_terminal()
                    && row.finished_at.is_some_and(|finished_at| finished_at <= cutoff)
            };
            let gone: Vec<FiringId> = self.rows.values().filter(old).map(|row| row.id).collect();
            if gone.is_empty() {
                continue;
            }
            job.pruned_before = job.pruned_before.max(Some(cutoff));
            for id in gone {
                if let Some(row) = self.rows.remove(&id) {
                    self.once.remove(&row.key());
                    removed += 1;
                }
                self.attempts.retain(|(of, _), _| *of != id);
            }
        }
        removed
    }

    pub(crate) fn pause(&mut self, namespace: &str, name: &str, by: &str, note: &str, now: Millis) -> bool {
        let Some(job) = self.jobs.get_mut(&(namespace.to_owned(), name.to_owned())) else { return false };
        let since = job.paused.as_ref().map_or(now, |(since, ..)| *since);
        job.paused = Some((since, by.to_owned(), note.to_owned()));
        true
    }

    pub(crate) fn resume(&mut self, namespace: &str, name: &str) -> bool {
        let Some(job) = self.jobs.get_mut(&(namespace.to_owned(), name.to_owned())) else { return false };
        job.paused = None;
        true
    }
}
