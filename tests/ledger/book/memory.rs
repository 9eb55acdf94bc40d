//! The book as the product sees it: the ledger's traits, over whatever carries a question to it.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use runner::internal::ledger::{
    Answer, AttemptRow, Claim, ClaimRequest, Counted, Decision, Due, EffectTerms, Effects, Enqueue, Enqueued,
    Expired, FiringId, FiringRow, Gaps, Heartbeat, HistoryFilter, Horizon, Housekeeping, JobRegistration,
    JobRow, Ledger, LedgerError, Operators, Question, Queue, Reader, Reading, Run, Running, Server, Settled,
    Settlement, Skip, Skipped, Suspect, Sweeping, Swept, Won, Work,
};

use crate::book::{Book, Millis, instant};

/// What carries a question to the book and the answer back.
pub(crate) trait Carrier: Debug + Send + Sync + 'static {
    /// Has `ask` done on the book at the moment it arrives there.
    fn carry<'a, T, F>(&'a self, doing: &'static str, ask: F) -> Answer<'a, T>
    where
        T: Debug + Send + 'static,
        F: FnOnce(&mut Book, Millis) -> T + Send + 'static;
}

/// A ledger in memory.
#[derive(Debug)]
pub(crate) struct MemoryLedger<C> {
    namespace: Arc<str>,
    carrier: C,
}

impl<C: Carrier> MemoryLedger<C> {
    pub(crate) fn new(namespace: &str, carrier: C) -> Self {
        Self { namespace: namespace.into(), carrier }
    }

    fn ask<'a, T, F>(&'a self, doing: &'static str, ask: F) -> Answer<'a, T>
    where
        T: Debug + Send + 'static,
        F: FnOnce(&mut Book, &str, Millis) -> T + Send + 'static,
    {
        let namespace = self.namespace.clone();
        self.carrier.carry(doing, move |book, now| ask(book, &namespace, now))
    }
}

impl<C: Carrier> Ledger for MemoryLedger<C> {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> Answer<'a, Claim> {
        let request = request.clone();
        self.ask("claim", move |book, namespace, now| book.claim(namespace, &request, now))
    }

    fn confirm<'a>(&'a self, request: &'a ClaimRequest) -> Answer<'a, Option<Won>> {
        let request = request.clone();
        self.ask("confirm", move |book, namespace, _| book.confirm(namespace, &request))
    }

    fn heartbeat(&self, run: Run, lease: Duration) -> Answer<'_, Heartbeat> {
        self.ask("heartbeat", move |book, namespace, now| book.heartbeat(namespace, run, lease, now))
    }

    fn settle<'a>(&'a self, settlement: &'a Settlement) -> Answer<'a, Settled> {
        let settlement = settlement.clone();
        self.ask("settle", move |book, namespace, now| book.settle(namespace, &settlement, now))
    }

    fn skip<'a>(&'a self, skip: &'a Skip) -> Answer<'a, Skipped> {
        let skip = skip.clone();
        self.ask("skip", move |book, namespace, now| book.skip(namespace, &skip, now))
    }
}

impl<C: Carrier> Queue for MemoryLedger<C> {
    fn enqueue<'a>(&'a self, enqueue: &'a Enqueue) -> Answer<'a, Enqueued> {
        let enqueue = enqueue.clone();
        self.ask("enqueue", move |book, namespace, now| book.enqueue(namespace, &enqueue, now))
    }

    fn due<'a>(&'a self, jobs: &'a [String], limit: u32) -> Answer<'a, Vec<Due>> {
        let jobs = jobs.to_vec();
        self.ask("due", move |book, namespace, now| book.due(namespace, &jobs, limit, now))
    }

    fn expire(&self, limit: u32) -> Answer<'_, Vec<Expired>> {
        self.ask("expire", move |book, namespace, now| book.expire(namespace, limit, now))
    }
}

impl<C: Carrier> Sweeping for MemoryLedger<C> {
    fn running(&self) -> Answer<'_, Vec<Running>> {
        self.ask("running", move |book, namespace, now| book.all_running(namespace, now))
    }

    fn sweep<'a>(&'a self, suspects: &'a [Suspect]) -> Answer<'a, Vec<Swept>> {
        let suspects = suspects.to_vec();
        self.ask("sweep", move |book, namespace, now| {
            suspects.iter().filter_map(|suspect| book.sweep(namespace, suspect, now)).collect()
        })
    }
}

impl<C: Carrier> Gaps for MemoryLedger<C> {
    fn horizons<'a>(&'a self, questions: &'a [Question]) -> Answer<'a, Vec<Horizon>> {
        let questions = questions.to_vec();
        self.ask("horizons", move |book, namespace, _| book.horizons(namespace, &questions))
    }

    fn decide<'a>(&'a self, decision: &'a Decision) -> Answer<'a, bool> {
        let decision = decision.clone();
        self.ask("decide", move |book, namespace, now| book.decide(namespace, &decision, now))
    }
}

impl<C: Carrier> Housekeeping for MemoryLedger<C> {
    fn register<'a>(&'a self, jobs: &'a [JobRegistration]) -> Answer<'a, ()> {
        let jobs = jobs.to_vec();
        self.ask("register", move |book, namespace, now| book.register(namespace, &jobs, now))
    }

    fn prune(&self, retention: Duration, _batch: u32) -> Answer<'_, u64> {
        self.ask("prune", move |book, namespace, now| book.prune(namespace, retention, now))
    }

    fn adopt(&self) -> Answer<'_, Option<Server>> {
        Box::pin(async { Ok(None) })
    }
}

impl<C: Carrier> Operators for MemoryLedger<C> {
    fn pause<'a>(&'a self, job: &'a str, by: &'a str, note: &'a str) -> Answer<'a, bool> {
        let (job, by, note) = (job.to_owned(), by.to_owned(), note.to_owned());
        self.ask("pause", move |book, namespace, now| book.pause(namespace, &job, &by, &note, now))
    }

    fn resume<'a>(&'a self, job: &'a str) -> Answer<'a, bool> {
        let job = job.to_owned();
        self.ask("resume", move |book, namespace, _| book.resume(namespace, &job))
    }

    fn cancel(&self, id: FiringId) -> Answer<'_, bool> {
        self.ask("cancel", move |book, namespace, now| book.cancel(namespace, id, now))
    }
}

impl<C: Carrier> Reader for MemoryLedger<C> {
    fn now(&self) -> Answer<'_, Reading> {
        self.ask("now", |_, _, now| Reading { now: instant(now), server: None })
    }

    fn history<'a>(&'a self, filter: &'a HistoryFilter) -> Answer<'a, Vec<FiringRow>> {
        let filter = filter.clone();
        self.ask("history", move |book, namespace, _| {
            let mut rows: Vec<_> = book
                .rows()
                .filter(|row| row.namespace == namespace)
                .map(crate::book::Row::shown)
                .filter(|row| {
                    filter.job.as_ref().is_none_or(|job| row.job == *job)
                        && filter.state.is_none_or(|state| row.state == state)
                        && filter.from.is_none_or(|from| row.scheduled_at >= from)
                        && filter.until.is_none_or(|until| row.scheduled_at <= until)
                })
                .collect();
            rows.sort_by_key(|row| std::cmp::Reverse((row.scheduled_at, row.id)));
            rows.truncate(if filter.limit == 0 { usize::MAX } else { filter.limit as usize });
            rows
        })
    }

    fn firing(&self, id: FiringId) -> Answer<'_, Option<FiringRow>> {
        self.ask("firing", move |book, namespace, _| {
            book.row(id).filter(|row| row.namespace == namespace).map(crate::book::Row::shown)
        })
    }

    fn attempts(&self, id: FiringId) -> Answer<'_, Vec<AttemptRow>> {
        self.ask("attempts", move |book, namespace, _| {
            let ours = book.row(id).is_some_and(|row| row.namespace == namespace);
            book.attempts().filter(|(of, _)| ours && *of == id).map(|(_, attempt)| attempt.clone()).collect()
        })
    }

    fn jobs(&self) -> Answer<'_, Vec<JobRow>> {
        self.ask("jobs", |book, namespace, _| book.jobs(namespace).map(crate::book::Job::shown).collect())
    }

    fn counts(&self) -> Answer<'_, Vec<Counted>> {
        self.ask("counts", |book, namespace, _| {
            let mut counts: std::collections::BTreeMap<(String, &str), Counted> = Default::default();
            for row in book.rows().filter(|row| row.namespace == namespace) {
                let job = row.job.to_string();
                counts
                    .entry((job.clone(), row.state.as_str()))
                    .or_insert_with(|| Counted { job, state: row.state.into(), rows: 0 })
                    .rows += 1;
            }
            counts.into_values().collect()
        })
    }
}

/// Jobs' own transactions need a database.
impl<C: Carrier> Effects for MemoryLedger<C> {
    fn begin<'a>(&'a self, _: &'a EffectTerms) -> Answer<'a, Option<Box<dyn Work>>> {
        Box::pin(async {
            Err(LedgerError::Unusable { hint: "a book in memory has no transactions".into(), source: None })
        })
    }

    fn committed(&self, _: Run) -> Answer<'_, bool> {
        Box::pin(async { Ok(false) })
    }
}
