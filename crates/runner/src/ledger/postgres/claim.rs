//! Winning a firing: the gate, the row, and the reasons for a "no".
//!
//! The statement decides; the reasons are read afterwards, when what stood in the way may be gone
//! already. Then nothing forbids the claim any more, and it is made again.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use sqlx::postgres::PgRow;

use super::PostgresLedger;
use super::connection::{Session, Statement};
use super::failure::{Failure, is_refused_by};
use super::rows::{self, get, int, millis, nominal};
use crate::firing::{Firing, State};
use crate::ledger::{Claim, ClaimRequest, Entry, FiringId, Found, Won};

/// How far a replica's clock may run ahead of the ledger's without being told to wait.
const SKEW: Duration = Duration::from_millis(100);

/// How often a claim is made again because the row in its way went away.
const TRIES: u32 = 5;

impl PostgresLedger {
    pub(super) async fn claim_firing(&self, request: &ClaimRequest) -> Result<Claim, Failure> {
        let mut session = self.corridor.session().await?;
        for _ in 0..TRIES {
            if let Some(row) = self.take(&mut session, request).await? {
                return Ok(Claim::Won(rows::won(&row)?));
            }
            let view = self.look(&mut session, &request.firing).await?;
            if let Some(no) = refusal(&view, request)? {
                return Ok(no);
            }
        }
        Err(Failure::Restless)
    }

    async fn take(
        &self,
        session: &mut Session<'_>,
        request: &ClaimRequest,
    ) -> Result<Option<PgRow>, Failure> {
        match request.entry {
            Entry::Fresh { not_after } => session.row(self.fresh(request, not_after)).await,
            Entry::Queued(id) => match session.row(self.queued(request, id)).await {
                // Another run of the job is running: the row stays queued, and that is no error.
                Err(Failure::Sql(error)) if is_refused_by(&error, "runner_firings_running") => Ok(None),
                answer => answer,
            },
        }
    }

    fn fresh<'q>(&'q self, request: &'q ClaimRequest, not_after: Duration) -> Statement<'q> {
        let firing = &request.firing;
        sqlx::query(include_str!("sql/claim_fresh.sql"))
            .bind(&*self.namespace)
            .bind(firing.job.as_str())
            .bind(nominal(firing.scheduled_at))
            .bind(int(firing.shard))
            .bind(&firing.trigger_key)
            .bind(firing.origin.as_str())
            .bind(request.claim_id)
            .bind(request.owner.as_str())
            .bind(request.exclusive)
            .bind(request.delivery.as_str())
            .bind(millis(request.lease))
            .bind(millis(not_after))
            .bind(millis(SKEW))
    }

    fn queued<'q>(&'q self, request: &'q ClaimRequest, id: FiringId) -> Statement<'q> {
        sqlx::query(include_str!("sql/claim_queued.sql"))
            .bind(&*self.namespace)
            .bind(request.firing.job.as_str())
            .bind(id.0)
            .bind(request.claim_id)
            .bind(request.owner.as_str())
            .bind(request.exclusive)
            .bind(request.delivery.as_str())
            .bind(millis(request.lease))
    }

    pub(super) async fn confirm_claim(&self, request: &ClaimRequest) -> Result<Option<Won>, Failure> {
        let confirm = self.of(include_str!("sql/confirm.sql"), &request.firing).bind(request.claim_id);
        let row = self.corridor.session().await?.row(confirm).await?;
        row.map(|row| rows::won(&row)).transpose()
    }

    /// What stands in the way of a row for `firing`.
    pub(super) async fn look(&self, session: &mut Session<'_>, firing: &Firing) -> Result<PgRow, Failure> {
        let view = session.row(self.of(include_str!("sql/refusal.sql"), firing)).await?;
        view.ok_or_else(|| Failure::Corrupt("the look at a firing gave no row".into()))
    }

    /// A statement whose first five arguments are the identity of `firing`.
    pub(super) fn of<'q>(&'q self, sql: &'static str, firing: &'q Firing) -> Statement<'q> {
        sqlx::query(sql)
            .bind(&*self.namespace)
            .bind(firing.job.as_str())
            .bind(nominal(firing.scheduled_at))
            .bind(int(firing.shard))
            .bind(&firing.trigger_key)
    }
}

/// The firing's own row in a look, if it has one.
pub(super) fn own_row(view: &PgRow) -> Result<Option<Found>, Failure> {
    get::<Option<i64>>(view, "id")?.map(|_| rows::found(view)).transpose()
}

/// The exclusive run of the same job and shard in a look, if there is one.
fn other_run(view: &PgRow) -> Result<Option<Found>, Failure> {
    let Some(id) = get(view, "other_id")? else { return Ok(None) };
    Ok(Some(Found {
        id: FiringId(id),
        scheduled_at: get(view, "other_scheduled_at")?,
        state: rows::word(view, "other_state")?,
        reason: get(view, "other_reason")?,
        owner: get(view, "other_owner")?,
    }))
}

/// Why the claim did not win; `None` if nothing forbids it any more.
fn refusal(view: &PgRow, request: &ClaimRequest) -> Result<Option<Claim>, Failure> {
    if let Some(found) = own_row(view)? {
        // An earlier try of this very claim whose answer was lost.
        if found.state == State::Running
            && get::<Option<uuid::Uuid>>(view, "claim_id")? == Some(request.claim_id)
        {
            return Ok(Some(Claim::Won(rows::won(view)?)));
        }
        if request.entry != Entry::Queued(found.id) || found.state != State::Queued {
            return Ok(Some(Claim::Duplicate(found)));
        }
    } else if matches!(request.entry, Entry::Queued(_)) {
        // Rows go away by retention only.
        return Ok(Some(Claim::Pruned));
    }
    if !get(view, "registered")? {
        return Ok(Some(Claim::Unregistered));
    }
    if get(view, "pruned")? && matches!(request.entry, Entry::Fresh { .. }) {
        return Ok(Some(Claim::Pruned));
    }
    if get(view, "paused")? {
        return Ok(Some(Claim::Paused));
    }
    if let Some(untimely) = untimely(view, request)? {
        return Ok(Some(untimely));
    }
    Ok(if request.exclusive { other_run(view)?.map(Claim::Overlap) } else { None })
}

/// Whether the ledger's clock forbids the claim.
fn untimely(view: &PgRow, request: &ClaimRequest) -> Result<Option<Claim>, Failure> {
    let now: DateTime<Utc> = get(view, "now")?;
    let (due, allowed_early, allowed_late) = match request.entry {
        Entry::Fresh { not_after } => {
            (nominal(request.firing.scheduled_at), millis(SKEW), Some(millis(not_after)))
        }
        Entry::Queued(_) => (get::<Option<DateTime<Utc>>>(view, "due_at")?.unwrap_or(now), 0, None),
    };
    let late = now - due;
    if late < TimeDelta::milliseconds(-allowed_early) {
        return Ok(Some(Claim::TooEarly((-late).to_std().unwrap_or_default())));
    }
    let too_late = allowed_late.is_some_and(|allowed| late > TimeDelta::milliseconds(allowed));
    Ok(too_late.then_some(Claim::TooLate))
}
