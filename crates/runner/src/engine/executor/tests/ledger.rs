//! A ledger that answers as it is told.

use std::sync::Arc;
use std::time::Duration;

use chrono::DateTime;
use futures_util::future::BoxFuture;

use super::answers::{Answers, Log, Requests};
use crate::firing::{Fence, FiringId, State};
use crate::ledger::sqlx::postgres::PgConnection;
use crate::ledger::sqlx::sqlite::SqliteConnection;
use crate::ledger::{
    Answer, Claim, ClaimRequest, EffectError, EffectTerms, Effects, Found, Heartbeat, Ledger, Run, Settled,
    Settlement, Skip, Skipped, Won, Work,
};

/// What every claim wins that is not told otherwise: a first attempt.
pub(super) const WON: Won = Won {
    id: FiringId(7),
    fence: Fence(41),
    attempt: 1,
    crashes: 0,
    failures: 0,
    started_at: DateTime::UNIX_EPOCH,
};

/// The run of [`WON`].
pub(super) const RUN: Run = Run { id: WON.id, fence: WON.fence };

/// Another row, in this state.
pub(super) fn found(state: State) -> Found {
    let owner = Some("other".into());
    Found { id: FiringId(6), scheduled_at: DateTime::UNIX_EPOCH, state: state.into(), reason: None, owner }
}

/// Unless told otherwise, everything succeeds.
#[derive(Debug)]
pub(super) struct ScriptedLedger {
    log: Log,
    pub(super) claim: Answers<Claim>,
    pub(super) confirm: Answers<Option<Won>>,
    pub(super) heartbeat: Answers<Heartbeat>,
    pub(super) settle: Answers<Settled>,
    pub(super) skip: Answers<Skipped>,
    /// The answer to the COMMIT of the run's own transaction.
    pub(super) commit: Arc<Answers<()>>,
    /// Whether that transaction has committed.
    pub(super) committed: Answers<bool>,
    pub(super) claims: Requests<ClaimRequest>,
    pub(super) confirms: Requests<ClaimRequest>,
    pub(super) heartbeats: Requests<(Run, Duration)>,
    pub(super) settlements: Requests<Settlement>,
    pub(super) skips: Requests<Skip>,
    pub(super) terms: Requests<EffectTerms>,
}

impl ScriptedLedger {
    pub(super) fn new(log: Log) -> Self {
        Self {
            log,
            claim: Answers::new(|| Ok(Claim::Won(WON))),
            confirm: Answers::new(|| Ok(None)),
            heartbeat: Answers::new(|| Ok(Heartbeat::Alive { cancel_requested: false })),
            settle: Answers::new(|| Ok(Settled::Recorded)),
            skip: Answers::new(|| Ok(Skipped::Recorded)),
            commit: Arc::new(Answers::new(|| Ok(()))),
            committed: Answers::new(|| Ok(true)),
            claims: Requests::default(),
            confirms: Requests::default(),
            heartbeats: Requests::default(),
            settlements: Requests::default(),
            skips: Requests::default(),
            terms: Requests::default(),
        }
    }
}

impl Ledger for ScriptedLedger {
    fn claim<'a>(&'a self, request: &'a ClaimRequest) -> Answer<'a, Claim> {
        self.log.note("claim");
        self.claims.push(request.clone());
        Box::pin(self.claim.next())
    }

    fn confirm<'a>(&'a self, request: &'a ClaimRequest) -> Answer<'a, Option<Won>> {
        self.log.note("confirm");
        self.confirms.push(request.clone());
        Box::pin(self.confirm.next())
    }

    fn heartbeat(&self, run: Run, lease: Duration) -> Answer<'_, Heartbeat> {
        self.log.note("heartbeat");
        self.heartbeats.push((run, lease));
        Box::pin(self.heartbeat.next())
    }

    fn settle<'a>(&'a self, settlement: &'a Settlement) -> Answer<'a, Settled> {
        self.log.note("settle");
        self.settlements.push(settlement.clone());
        Box::pin(self.settle.next())
    }

    fn skip<'a>(&'a self, skip: &'a Skip) -> Answer<'a, Skipped> {
        self.log.note("skip");
        self.skips.push(skip.clone());
        Box::pin(self.skip.next())
    }
}

impl Effects for ScriptedLedger {
    fn begin<'a>(&'a self, terms: &'a EffectTerms) -> Answer<'a, Option<Box<dyn Work>>> {
        self.terms.push(terms.clone());
        let work = OpenWork { log: self.log.clone(), commit: self.commit.clone() };
        Box::pin(async { Ok(Some(Box::new(work) as Box<dyn Work>)) })
    }

    fn committed(&self, run: Run) -> Answer<'_, bool> {
        assert_eq!(run, RUN, "asked for another run");
        self.log.note("committed?");
        Box::pin(self.committed.next())
    }
}

/// A transaction that is open.
#[derive(Debug)]
struct OpenWork {
    log: Log,
    commit: Arc<Answers<()>>,
}

impl Work for OpenWork {
    fn postgres(&mut self) -> Option<Result<&mut PgConnection, EffectError>> {
        None
    }

    fn sqlite(&mut self) -> Option<Result<&mut SqliteConnection, EffectError>> {
        None
    }

    fn settle<'a>(
        &'a mut self,
        _: &'a EffectTerms,
        _: Option<String>,
    ) -> BoxFuture<'a, Result<(), EffectError>> {
        Box::pin(async { Ok(()) })
    }

    fn commit(self: Box<Self>) -> Answer<'static, ()> {
        self.log.note("commit");
        Box::pin(async move { self.commit.next().await })
    }
}
