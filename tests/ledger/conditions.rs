//! The conditions of the ledger's statements: what breaks without each, and which test says so.
//!
//! A condition may stand in several statements; each of them is tried without it. Where one condition
//! covers another, both are taken out together, or it is listed among the [`SPARE`] ones.

/// Which ledger's statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    Postgres,
    Sqlite,
}

/// What is taken out of a statement: file, text, and what comes in its place.
pub(crate) type Piece = (&'static str, &'static str, &'static str);

/// What is taken out at once.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    pub(crate) dialect: Dialect,
    pub(crate) first: Piece,
    /// Conditions of other statements that would cover for the first.
    pub(crate) also: &'static [Piece],
}

/// A condition, in as many statements as it stands in.
#[derive(Debug)]
pub(crate) struct Condition {
    pub(crate) words: &'static str,
    pub(crate) without: &'static str,
    /// The test that fails, as `room::claim`.
    pub(crate) test: &'static str,
    pub(crate) taken: &'static [Taken],
}

const fn condition(
    words: &'static str,
    without: &'static str,
    test: &'static str,
    taken: &'static [Taken],
) -> Condition {
    Condition { words, without, test, taken }
}

const fn postgres(file: &'static str, text: &'static str) -> Taken {
    Taken { dialect: Dialect::Postgres, first: (file, text, ""), also: &[] }
}

const fn sqlite(file: &'static str, text: &'static str) -> Taken {
    Taken { dialect: Dialect::Sqlite, first: (file, text, ""), also: &[] }
}

impl Taken {
    /// With something in its place.
    const fn put(self, put: &'static str) -> Self {
        Self { first: (self.first.0, self.first.1, put), ..self }
    }

    /// Together with these.
    const fn and(self, also: &'static [Piece]) -> Self {
        Self { also, ..self }
    }
}

pub(crate) const CONDITIONS: &[Condition] = &[
    // --- Winning a firing -------------------------------------------------------------------------
    condition(
        "a firing has one row",
        "it runs on every replica",
        "claims::a_firing_that_ended_is_a_duplicate",
        &[
            postgres("0001_ledger", "UNIQUE (namespace, job, scheduled_at, shard, trigger_key)")
                .put("CHECK (true)"),
            sqlite("0001_ledger", "UNIQUE INDEX runner_firings_once").put("INDEX runner_firings_once"),
        ],
    ),
    condition(
        "one exclusive run of a job and shard at a time",
        "two firings of a job overlap",
        "races::one_of_twenty_exclusive_firings_of_a_job_runs",
        &[
            postgres("0001_ledger", "UNIQUE INDEX runner_firings_running")
                .put("INDEX runner_firings_running"),
            sqlite("0001_ledger", "UNIQUE INDEX runner_firings_running").put("INDEX runner_firings_running"),
        ],
    ),
    condition(
        "… of those that run",
        "what has ended keeps its job from running ever again",
        "claims::an_exclusive_run_refuses_another_of_its_job_and_shard",
        &[
            postgres("0001_ledger", "WHERE state = 'running' AND exclusive;").put("WHERE exclusive;"),
            sqlite("0001_ledger", "WHERE state = 'running' AND exclusive = 1;").put("WHERE exclusive = 1;"),
        ],
    ),
    condition(
        "… and exclude others",
        "`overlap = \"allow\"` allows none",
        "claims::runs_that_are_not_exclusive_do_not_overlap",
        &[
            postgres("0001_ledger", "WHERE state = 'running' AND exclusive;").put("WHERE state = 'running';"),
            sqlite("0001_ledger", "WHERE state = 'running' AND exclusive = 1;")
                .put("WHERE state = 'running';"),
        ],
    ),
    condition(
        "a row in the way is a no, not an error",
        "a duplicate or an overlap counts as an outage",
        "claims::an_exclusive_run_refuses_another_of_its_job_and_shard",
        &[postgres("claim_fresh", "ON CONFLICT DO NOTHING"), sqlite("claim", "ON CONFLICT DO NOTHING")],
    ),
    condition(
        "… for a queued row, too",
        "an overlap in the queue counts as an outage",
        "claims::a_queued_row_that_would_overlap_stays_queued",
        &[sqlite("claim_queued", "UPDATE OR IGNORE runner_firings").put("UPDATE runner_firings")],
    ),
    condition(
        "the job is not paused",
        "a paused job runs",
        "claims::a_paused_job_is_not_claimed_until_it_is_resumed",
        &[
            postgres("claim_fresh", "AND paused_at IS NULL"),
            postgres("claim_queued", "AND paused_at IS NULL"),
            sqlite("claim", "AND j.paused_at IS NULL"),
            sqlite("claim_queued", "AND j.paused_at IS NULL"),
        ],
    ),
    condition(
        "the gate is that of the job's own namespace and name",
        "a pause holds until any other job is not paused",
        "claims::a_paused_job_is_not_claimed_until_it_is_resumed",
        &[
            postgres("claim_fresh", "namespace = $1 AND name").put("name"),
            postgres("claim_fresh", "AND name = $2"),
            postgres("claim_queued", "namespace = $1 AND name").put("name"),
            postgres("claim_queued", "AND name = $2"),
            sqlite("claim", "j.namespace = ?1 AND"),
            sqlite("claim", "AND j.name = ?2"),
            sqlite("claim_queued", "AND j.name = ?2").and(&[(
                "claim_queued",
                "AND runner_firings.job = j.name",
                "",
            )]),
            sqlite("claim_queued", "j.namespace = ?1 AND").and(&[(
                "claim_queued",
                "AND runner_firings.namespace = j.namespace",
                "",
            )]),
        ],
    ),
    condition(
        "retention has not passed over the instant",
        "a firing whose row was removed runs again",
        "upkeep::prune_removes_old_ends_and_raises_the_watermark",
        &[
            postgres("claim_fresh", "AND (pruned_before IS NULL OR pruned_before <= $3)"),
            sqlite("claim", "AND ?3 >= coalesce(j.pruned_before, ?3)"),
        ],
    ),
    condition(
        "the job's row is locked: a pause in flight is waited for",
        "a pause is acknowledged, and a claim wins after it",
        "in_flight::a_pause_in_flight_is_waited_for",
        &[
            postgres("claim_fresh", "FOR NO KEY UPDATE"),
            postgres("claim_queued", "FOR NO KEY UPDATE"),
            postgres("enqueue", "FOR NO KEY UPDATE"),
            postgres("decide", "FOR NO KEY UPDATE"),
        ],
    ),
    condition(
        "the job's row is locked: a prune in flight is waited for",
        "a firing whose row is being removed gets another",
        "in_flight::a_prune_in_flight_is_waited_for",
        &[
            postgres("claim_fresh", "FOR NO KEY UPDATE"),
            postgres("enqueue", "FOR NO KEY UPDATE"),
            postgres("skip", "FOR NO KEY UPDATE"),
            postgres("decide", "FOR NO KEY UPDATE"),
        ],
    ),
    condition(
        "the instant has come by the ledger's clock, but for the skew allowed",
        "a replica whose clock is ahead runs tomorrow's work",
        "claims::a_firing_of_the_future_is_told_how_long_to_wait",
        &[
            postgres("claim_fresh", "$3 <= now + $13 * interval '1 millisecond'").put("$13 = $13"),
            sqlite("claim", "AND ?3 <= now + ?14"),
        ],
    ),
    condition(
        "… which lets a little through",
        "half of the replicas are told to wait each time",
        "claims::a_clock_that_runs_a_little_ahead_is_let_through",
        &[
            postgres("claim_fresh", "$3 <= now + $13 * interval '1 millisecond'")
                .put("$3 <= now AND $13 = $13"),
            sqlite("claim", "?3 <= now + ?14").put("?3 <= now"),
        ],
    ),
    condition(
        "the start deadline has not passed",
        "a slow replica runs what is long over",
        "claims::a_firing_past_its_start_deadline_is_too_late",
        &[
            postgres("claim_fresh", "AND now <= $3 + $12 * interval '1 millisecond'").put("AND $12 = $12"),
            sqlite("claim", "AND now <= ?3 + ?13"),
        ],
    ),
    condition(
        "each claim has a fence of its own, higher than all before",
        "a stale owner is as good as the new one",
        "claims::fences_grow_with_every_claim",
        &[
            postgres("claim_fresh", "nextval('runner_fence')").put("0"),
            postgres("claim_queued", "nextval('runner_fence')").put("0"),
            sqlite("mint_fence", "minted = minted + 1").put("minted = minted"),
            sqlite("claim_queued", "fence = ?4,").put(""),
        ],
    ),
    condition(
        "a queued row is taken while it is queued",
        "two replicas take it",
        "races::one_of_twenty_claims_wins_a_queued_row",
        &[
            postgres("claim_queued", "AND state = 'queued' AND due_at <= now"),
            sqlite("claim_queued", "AND runner_firings.state = 'queued'").and(&[(
                "claim_queued",
                "AND runner_firings.due_at <= now",
                "",
            )]),
        ],
    ),
    condition(
        "… and due",
        "a retry does not wait",
        "claims::a_queued_row_is_not_claimed_before_it_is_due",
        &[
            postgres("claim_queued", "AND due_at <= now"),
            sqlite("claim_queued", "AND runner_firings.due_at <= now"),
        ],
    ),
    condition(
        "a queued row is taken by its number, its namespace and its job",
        "a claim takes other rows along, or goes round the gate of their job",
        "others::a_queued_row_is_taken_alone_and_through_the_gate_of_its_own_job",
        &[
            postgres("claim_queued", "id = $3 AND"),
            postgres("claim_queued", "AND namespace = $1 AND job").put("AND job"),
            postgres("claim_queued", "AND job = $2"),
            sqlite("claim_queued", "AND runner_firings.id = ?3"),
            sqlite("claim_queued", "AND runner_firings.namespace = j.namespace"),
            sqlite("claim_queued", "AND runner_firings.job = j.name"),
        ],
    ),
    condition(
        "a claim counts as an attempt",
        "retries never end",
        "claims::fences_grow_with_every_claim",
        &[
            postgres("claim_queued", "attempt = attempt + 1,"),
            sqlite("claim_queued", "attempt = attempt + 1,"),
        ],
    ),
    condition(
        "what the run before left is cleared",
        "an error of the first attempt is shown at the second",
        "runs::a_requeued_run_waits_and_runs_again_with_a_new_fence",
        &[
            postgres("claim_queued", "due_at = NULL, "),
            postgres("claim_queued", "expires_at = NULL, "),
            postgres("claim_queued", ", error = NULL"),
            postgres("claim_queued", ", output = NULL"),
            postgres("claim_queued", "reason = NULL, "),
            sqlite("claim_queued", "due_at = NULL, "),
            sqlite("claim_queued", "expires_at = NULL, "),
            sqlite("claim_queued", ", error = NULL"),
            sqlite("claim_queued", ", output = NULL"),
            sqlite("claim_queued", "reason = NULL, "),
        ],
    ),
    condition(
        "the row in the way is the firing's own",
        "a claim is told of a duplicate that is another firing",
        "others::a_claim_meets_the_row_of_its_own_firing_only",
        &[
            postgres("refusal", "mine.namespace = $1 AND"),
            postgres("refusal", "AND mine.job = $2"),
            postgres("refusal", "AND mine.scheduled_at = $3"),
            postgres("refusal", "mine.shard = $4 AND"),
            postgres("refusal", "AND mine.trigger_key = $5").put("AND $5 = $5"),
            sqlite("claim_refused", "f.namespace = ?1 AND"),
            sqlite("claim_refused", "AND f.job = ?2"),
            sqlite("claim_refused", "AND f.scheduled_at = ?3"),
            sqlite("claim_refused", "AND f.shard = ?4"),
            sqlite("claim_refused", "AND f.trigger_key = ?5"),
        ],
    ),
    condition(
        "the run in the way is an exclusive one of the job and shard",
        "a claim is told of an overlap with something that does not run",
        "others::an_overlap_names_the_exclusive_run_of_its_own_job_and_shard",
        &[
            postgres("refusal", "other.namespace = $1 AND"),
            postgres("refusal", "AND other.job = $2"),
            postgres("refusal", "AND other.shard = $4"),
            postgres("refusal", "AND other.state = 'running'"),
            postgres("refusal", "AND other.exclusive"),
            sqlite("claim_refused", "b.namespace = ?1 AND"),
            sqlite("claim_refused", "AND b.job = ?2"),
            sqlite("claim_refused", "AND b.shard = ?4"),
            sqlite("claim_refused", "AND b.state = 'running'"),
            sqlite("claim_refused", "AND b.exclusive = 1"),
        ],
    ),
    // --- Was it ours? -----------------------------------------------------------------------------
    condition(
        "only the `claim_id` of this very try is a yes",
        "a replica takes another's claim, or its own earlier one, for this one",
        "claims::confirm_knows_the_claim_that_is_running_and_no_other",
        &[postgres("confirm", "claim_id = $6").put("$6 = $6"), sqlite("confirm", "claim_id = ?6 AND")],
    ),
    condition(
        "… and only while the row runs",
        "an owner begins that was swept before it had its answer",
        "claims::confirm_does_not_know_a_run_that_was_swept",
        &[postgres("confirm", "AND state = 'running'"), sqlite("confirm", "AND state = 'running'")],
    ),
    condition(
        "… of the firing that was claimed",
        "a `claim_id` that is used twice confirms the other firing",
        "others::a_claim_is_confirmed_for_the_firing_that_was_claimed_only",
        &[
            postgres("confirm", "namespace = $1 AND"),
            postgres("confirm", "AND job = $2"),
            postgres("confirm", "AND scheduled_at = $3"),
            postgres("confirm", "AND shard = $4"),
            postgres("confirm", "AND trigger_key = $5").put("AND $5 = $5"),
            sqlite("confirm", "namespace = ?1 AND"),
            sqlite("confirm", "AND job = ?2"),
            sqlite("confirm", "AND scheduled_at = ?3"),
            sqlite("confirm", "AND shard = ?4"),
            sqlite("confirm", "AND trigger_key = ?5"),
        ],
    ),
    // --- Keeping a run and ending it --------------------------------------------------------------
    condition(
        "a heartbeat is of the run's own fence",
        "an owner that was replaced keeps the lease of its successor alive, and goes on",
        "runs::a_heartbeat_of_anything_but_the_run_is_lost",
        &[postgres("heartbeat", "AND fence = $3").put("AND $3 = $3"), sqlite("heartbeat", "AND fence = ?3")],
    ),
    condition(
        "… and of a row that runs",
        "an owner goes on whose run was ended",
        "runs::a_heartbeat_of_anything_but_the_run_is_lost",
        &[postgres("heartbeat", "AND state = 'running'"), sqlite("heartbeat", "AND state = 'running'")],
    ),
    condition(
        "a run is kept and ended by its own number, too",
        "a fence alone would do, in every namespace",
        "others::a_run_is_kept_and_ended_by_its_own_number_and_fence_only",
        &[
            postgres("heartbeat", "id = $2 AND"),
            postgres("settle_terminal", "id = $2 AND"),
            postgres("settle_terminal", "AND namespace = $1"),
            postgres("settle_requeue", "id = $2 AND"),
            postgres("settle_requeue", "AND namespace = $1"),
            postgres("settle_found", "WHERE id = $2 AND").put("WHERE"),
            postgres("settle_found", "AND namespace = $1 AND fence").put("AND fence"),
            sqlite("heartbeat", "AND id = ?2"),
            sqlite("settle", "AND id = ?2"),
            sqlite("settle", "namespace = ?1 AND"),
            sqlite("settle_recorded", "AND id = ?2"),
            sqlite("settle_recorded", "namespace = ?1 AND"),
        ],
    ),
    condition(
        "… and in its own namespace",
        "a deployment keeps a run of its neighbour alive",
        "claims::namespaces_do_not_see_each_other",
        &[postgres("heartbeat", "AND namespace = $1"), sqlite("heartbeat", "namespace = ?1 AND")],
    ),
    condition(
        "an end is of the run's own fence",
        "an owner that was replaced ends the run of its successor",
        "runs::a_settle_after_a_takeover_is_fenced",
        &[
            postgres("settle_terminal", "AND fence = $3").put("AND $3 = $3"),
            postgres("settle_requeue", "AND fence = $3").put("AND $3 = $3"),
            sqlite("settle", "AND fence = ?3"),
            sqlite("requeue", "AND fence = ?3").and(&[("supersede", "AND fence = ?3", "")]),
        ],
    ),
    condition(
        "an end is of a row that runs, or is lost",
        "an ended firing ends again, differently",
        "runs::another_end_does_not_change_a_terminal_row",
        &[
            postgres(
                "settle_terminal",
                "AND (state = 'running' OR (state = 'lost' AND $4 IN ('succeeded', 'failed')))",
            ),
            postgres("settle_requeue", "AND state = 'running'"),
            sqlite("settle", "AND (state = 'running' OR (state = 'lost' AND ?4 IN ('succeeded', 'failed')))"),
            sqlite("requeue", "AND state = 'running'").and(&[("supersede", "AND state = 'running'", "")]),
        ],
    ),
    condition(
        "a lost row takes its late result",
        "work that was done stays `lost`",
        "runs::a_lost_run_takes_its_late_result_once",
        &[
            postgres("settle_terminal", "OR (state = 'lost' AND $4 IN ('succeeded', 'failed'))"),
            sqlite("settle", "OR (state = 'lost' AND ?4 IN ('succeeded', 'failed'))"),
        ],
    ),
    condition(
        "… and only a result",
        "a lost row is cancelled, or lost again for another reason",
        "runs::a_lost_run_takes_no_other_end",
        &[
            postgres("settle_terminal", "AND $4 IN ('succeeded', 'failed')"),
            sqlite("settle", "AND ?4 IN ('succeeded', 'failed')"),
        ],
    ),
    condition(
        "a wish to cancel is not lost with a requeue",
        "a cancelled firing runs again",
        "runs::a_wish_to_cancel_is_not_lost_with_a_requeue",
        &[
            postgres(
                "settle_requeue",
                "state = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'queued' END,",
            )
            .put("state = 'queued',"),
            postgres("settle_requeue", "FROM ended WHERE state = 'queued'").put("FROM ended"),
            sqlite("supersede", "AND cancel_requested = 0"),
        ],
    ),
    condition(
        "a superseded attempt goes into the history",
        "nobody knows what the attempts before did",
        "runs::a_requeued_run_waits_and_runs_again_with_a_new_fence",
        &[postgres("settle_requeue", "FROM ended WHERE state = 'queued'").put("FROM ended WHERE false")],
    ),
    condition(
        "only a crash counts as one",
        "a deploy ends firings as a crash loop",
        "runs::only_crashed_runs_count_as_crashes",
        &[
            postgres("settle_requeue", "crashes = crashes + $7::int").put("crashes = crashes + 1"),
            sqlite("requeue", "crashes = crashes + ?5").put("crashes = crashes + 1"),
        ],
    ),
    condition(
        "a settle is recorded if the row says the same under the same fence",
        "a worker is told that its result counts, and it does not",
        "others::an_end_that_was_recorded_is_told_from_any_other",
        &[
            postgres("settle_found", "AND namespace = $1 AND fence = $3\n      AND")
                .put("AND namespace = $1 AND"),
            postgres("settle_found", "state = $4 AND reason").put("reason"),
            sqlite("settle_recorded", "AND state = ?4"),
            sqlite("requeue_recorded", "a.firing_id = f.id AND"),
            sqlite("requeue_recorded", "AND a.fence = ?3"),
            sqlite("requeue_recorded", "f.namespace = ?1 AND"),
            sqlite("requeue_recorded", "AND f.id = ?2"),
            sqlite("requeue_recorded", "AND f.fence = ?3"),
            sqlite("requeue_recorded", "AND f.cancel_requested = 1"),
            sqlite("requeue_recorded", "AND f.state = 'cancelled'"),
            postgres("settle_found", "state = 'cancelled' AND"),
            postgres("settle_found", "AND cancel_requested"),
            postgres("settle_found", "$4 = 'queued' AND state").put("state"),
            postgres("settle_found", "firing_id = $2 AND firing").put("firing"),
            postgres("settle_found", "AND firing.namespace = $1"),
            postgres("settle_found", "AND runner_attempts.fence = $3"),
        ],
    ),
    condition(
        "… and for the same reason",
        "a worker is told that its result counts, and it does not",
        "runs::another_end_does_not_change_a_terminal_row",
        &[
            postgres("settle_found", "AND reason IS NOT DISTINCT FROM $5"),
            sqlite("settle_recorded", "AND fence = ?3 AND state = ?4 AND reason IS ?5").put("AND fence = ?3"),
        ],
    ),
    condition(
        "… of the same fence",
        "a worker is told that its result counts, and it is its successor's",
        "runs::a_settle_after_a_takeover_is_fenced",
        &[
            postgres("settle_found", "AND namespace = $1 AND fence = $3\n      AND")
                .put("AND namespace = $1 AND"),
            sqlite("settle_recorded", "AND fence = ?3"),
        ],
    ),
    condition(
        "a requeue is recorded if its attempt stands in the history, whatever came after",
        "a requeue whose answer was lost counts as refused",
        "runs::a_requeue_repeated_is_recorded_even_after_the_next_claim",
        &[
            postgres("settle_found", "AND runner_attempts.reason = $5"),
            postgres("settle_found", ") OR $4 = 'queued' AND EXISTS (").put(") OR $4 = 'no' AND EXISTS ("),
            sqlite("requeue_recorded", "(a.reason = ?4\n").put("(a.fence > 0\n"),
        ],
    ),
    condition(
        "a requeue that cancelled is told from a run that was swept and then cancelled",
        "an owner that came too late is told that its requeue counts",
        "sweeps::a_swept_run_cancelled_in_the_queue_is_not_its_owners_requeue",
        &[
            postgres(
                "settle_found",
                "AND NOT EXISTS (SELECT FROM runner_attempts WHERE firing_id = $2 AND fence = $3)",
            ),
            sqlite("requeue_recorded", "a.fence IS NULL AND"),
        ],
    ),
    // --- The end of a transaction -----------------------------------------------------------------
    condition(
        "a transaction is the run's own",
        "an owner that was replaced gets a transaction",
        "effects::a_transaction_belongs_to_a_number_and_a_fence",
        &[
            postgres("effect_begin", "id = $2 AND"),
            postgres("effect_begin", "AND namespace = $1").put("AND $1 = $1"),
            postgres("effect_begin", "AND fence = $3"),
            sqlite("effect_ours", "namespace = ?1 AND"),
            sqlite("effect_ours", "AND id = ?2"),
            sqlite("effect_ours", "AND fence = ?3"),
        ],
    ),
    condition(
        "… and it still runs",
        "a run that was swept works on",
        "effects::a_run_that_was_taken_over_gets_no_transaction",
        &[postgres("effect_begin", "AND state = 'running'"), sqlite("effect_ours", "AND state = 'running'")],
    ),
    condition(
        "the transaction's last statement finds the run as it was",
        "work of an owner that was replaced commits",
        "effects::in_postgres::a_takeover_in_between_undoes_the_work",
        &[postgres("effect_settle", "AND state = 'running'")],
    ),
    condition(
        "… under its fence",
        "work of an owner that was replaced commits beside its successor's",
        "effects::in_postgres::a_successor_at_work_undoes_the_work",
        &[postgres("effect_settle", "AND fence = $3").put("AND $3 = $3")],
    ),
    condition(
        "… and nothing else",
        "one commit ends the firings of everybody",
        "effects::a_commit_ends_its_own_firing_only",
        &[
            postgres("effect_settle", "id = $2 AND").and(&[(
                "effect_settle",
                "AND fence = $3",
                "AND $3 = $3",
            )]),
            sqlite("effect_settle", "AND id = ?2").and(&[("effect_settle", "AND fence = ?3", "")]),
        ],
    ),
    condition(
        "… in the transaction that was begun",
        "a firing succeeds although its work was undone",
        "effects::a_transaction_that_was_ended_by_a_statement_does_not_end_the_firing",
        &[postgres("effect_settle", "AND current_setting('runner.effect', true) = $4").put("AND $4 = $4")],
    ),
    condition(
        "an unknown commit is told by the run's own row",
        "a run is said to have committed, and it was another",
        "effects::a_transaction_belongs_to_a_number_and_a_fence",
        &[
            postgres("effect_committed", "id = $2 AND"),
            postgres("effect_committed", "AND namespace = $1"),
            postgres("effect_committed", "AND fence = $3").put("AND $3 = $3"),
            sqlite("effect_committed", "namespace = ?1 AND"),
            sqlite("effect_committed", "AND id = ?2"),
            sqlite("effect_committed", "AND fence = ?3"),
        ],
    ),
    condition(
        "… when it has succeeded",
        "a run that failed is said to have committed",
        "effects::an_unknown_commit_is_answered_by_the_row",
        &[
            postgres("effect_committed", "state = 'succeeded'").put("true"),
            sqlite("effect_committed", "AND state = 'succeeded'"),
        ],
    ),
    condition(
        "… and no commit is under way any more",
        "a commit in flight is said not to have been, and the work is done again",
        "in_flight::a_commit_in_flight_is_waited_for_before_its_outcome_is_told",
        &[postgres("effect_committed", "FOR SHARE")],
    ),
    condition(
        "the next attempt throws out what the last one left at work",
        "it waits for the locks of an owner that is frozen",
        "effects::in_postgres::the_next_attempt_throws_out_what_the_last_one_left_at_work",
        &[postgres("effect_evict", "count(pg_terminate_backend(pid))").put("count(pid)")],
    ),
    condition(
        "… and not itself",
        "no second attempt ever commits",
        "effects::in_postgres::the_next_attempt_throws_out_what_the_last_one_left_at_work",
        &[postgres("effect_evict", "AND application_name <> $1")],
    ),
    // --- Owners that vanished ---------------------------------------------------------------------
    condition(
        "a run is swept under the fence that was seen",
        "the new owner is swept for the silence of the old one",
        "sweeps::a_takeover_in_between_makes_the_sweep_miss",
        &[postgres("sweep", "firing.fence = suspect.fence AND")],
    ),
    condition(
        "a run is swept with the lease that was seen",
        "an owner is swept that has just proved to be alive",
        "sweeps::a_heartbeat_in_between_makes_the_sweep_miss",
        &[
            postgres("sweep", "AND firing.lease_until = suspect.lease_until"),
            sqlite("sweep_look", "AND lease_until = ?4"),
        ],
    ),
    condition(
        "a run is swept when its lease is over by the ledger's clock",
        "a replica whose clock runs fast sweeps the living",
        "sweeps::a_living_lease_is_not_swept",
        &[
            postgres("sweep", "AND firing.lease_until < clock_timestamp()"),
            sqlite("sweep_look", "AND lease_until <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER)"),
        ],
    ),
    condition(
        "a run is swept by its own number, fence and namespace",
        "another run is swept along",
        "others::a_run_is_swept_by_its_own_number_fence_and_lease_only",
        &[
            postgres("sweep", "firing.id = suspect.id").put("true"),
            postgres("sweep", "firing.fence = suspect.fence AND"),
            postgres("sweep", "firing.namespace = $1 AND").put("$1 = $1 AND"),
            postgres("sweep", "WHERE firing.id = gone.id"),
            sqlite("sweep_look", "AND id = ?2").and(&[
                ("settle", "AND id = ?2", ""),
                ("supersede", "AND id = ?2", ""),
                ("requeue", "AND id = ?2", ""),
            ]),
            sqlite("sweep_look", "AND fence = ?3").and(&[
                ("settle", "AND fence = ?3", ""),
                ("supersede", "AND fence = ?3", ""),
                ("requeue", "AND fence = ?3", ""),
            ]),
            sqlite("sweep_look", "namespace = ?1 AND").and(&[
                ("settle", "namespace = ?1 AND", ""),
                ("supersede", "namespace = ?1 AND", ""),
                ("requeue", "namespace = ?1 AND", ""),
            ]),
        ],
    ),
    condition(
        "a row that somebody writes to is passed by",
        "a heartbeat in flight is overtaken, and the living swept",
        "in_flight::a_heartbeat_in_flight_makes_the_sweep_miss",
        &[
            postgres("sweep", "FOR UPDATE OF firing SKIP LOCKED"),
            postgres("sweep", "FOR UPDATE OF firing SKIP LOCKED").put("FOR UPDATE OF firing"),
        ],
    ),
    condition(
        "a sweep of an at-most-once run leaves it lost",
        "it runs twice",
        "sweeps::a_vanished_owner_of_an_at_most_once_run_leaves_it_lost",
        &[postgres("sweep", "WHEN firing.delivery = 'at_most_once' THEN 'lost'")
            .put("WHEN false THEN 'lost'")],
    ),
    condition(
        "above max_crashes a firing fails",
        "a job that takes its replica down does so for ever",
        "sweeps::a_firing_that_keeps_losing_its_owner_ends_as_a_crash_loop",
        &[
            postgres("sweep", "WHEN firing.crashes + 1 > suspect.max_crashes THEN 'failed'"),
            postgres("sweep", "crashes = crashes + 1,"),
            sqlite("requeue", "crashes = crashes + ?5,"),
        ],
    ),
    condition(
        "a sweep of a run to be cancelled leaves it cancelled",
        "a cancelled firing runs again",
        "sweeps::a_vanished_owner_of_a_run_to_be_cancelled_leaves_it_cancelled",
        &[postgres("sweep", "WHEN firing.cancel_requested THEN 'cancelled'")],
    ),
    condition(
        "a swept attempt goes into the history",
        "nobody knows what the attempts before did",
        "sweeps::a_vanished_owners_firing_is_queued_again_with_its_history",
        &[postgres("sweep", "FROM swept WHERE state = 'queued'").put("FROM swept WHERE false")],
    ),
    condition(
        "… unless it was the last",
        "the last attempt stands there twice",
        "sweeps::a_vanished_owner_of_an_at_most_once_run_leaves_it_lost",
        &[postgres("sweep", "FROM swept WHERE state = 'queued'").put("FROM swept")],
    ),
    condition(
        "the list of runs holds what runs, in the own namespace",
        "the sweep is shown what it has no business with",
        "others::what_ended_or_waits_is_not_running",
        &[
            postgres("running", "WHERE namespace = $1 AND").put("WHERE $1 = $1 AND"),
            postgres("running", "AND state = 'running'"),
            sqlite("running", "namespace = ?1 AND"),
            sqlite("running", "AND state = 'running'"),
        ],
    ),
    // --- The queue --------------------------------------------------------------------------------
    condition(
        "nothing is queued while the job is paused",
        "a paused job fills its queue",
        "queue::nothing_is_queued_for_a_paused_unknown_or_pruned_job",
        &[postgres("enqueue", "AND paused_at IS NULL"), sqlite("enqueue", "AND j.paused_at IS NULL")],
    ),
    condition(
        "… nor what retention has passed over",
        "a firing whose row was removed runs again",
        "queue::nothing_is_queued_for_a_paused_unknown_or_pruned_job",
        &[
            postgres("enqueue", "AND (pruned_before IS NULL OR pruned_before <= $3)"),
            sqlite("enqueue", "AND ?3 >= coalesce(j.pruned_before, ?3)"),
        ],
    ),
    condition(
        "… by the row of the job itself",
        "any other job's gate would do",
        "queue::nothing_is_queued_for_a_paused_unknown_or_pruned_job",
        &[
            postgres("enqueue", "namespace = $1 AND name").put("name"),
            postgres("enqueue", "AND name = $2"),
            sqlite("enqueue", "j.namespace = ?1 AND"),
            sqlite("enqueue", "AND j.name = ?2"),
        ],
    ),
    condition(
        "a firing with a row is not queued",
        "it counts as an outage",
        "queue::a_firing_with_a_row_is_not_queued",
        &[postgres("enqueue", "ON CONFLICT DO NOTHING"), sqlite("enqueue", "ON CONFLICT DO NOTHING")],
    ),
    condition(
        "one waits for an overlap",
        "a job that is slower than its schedule queues without end",
        "queue::one_waits_for_an_overlap",
        &[
            postgres("0001_ledger", "UNIQUE INDEX runner_firings_waiting")
                .put("INDEX runner_firings_waiting"),
            sqlite("0001_ledger", "UNIQUE INDEX runner_firings_waiting").put("INDEX runner_firings_waiting"),
        ],
    ),
    condition(
        "… and only that: what waits for another reason does not count",
        "a retry, or what was asked for by hand, counts as an outage",
        "queue::one_waits_for_an_overlap",
        &[
            postgres("0001_ledger", "WHERE state = 'queued' AND reason = 'overlap'")
                .put("WHERE state = 'queued'"),
            sqlite("0001_ledger", "WHERE state = 'queued' AND reason = 'overlap'")
                .put("WHERE state = 'queued'"),
        ],
    ),
    condition(
        "… while it waits",
        "a firing that was skipped for an overlap keeps later ones from being skipped",
        "skips::an_overlap_is_skipped_only_while_something_runs",
        &[
            postgres("0001_ledger", "WHERE state = 'queued' AND reason = 'overlap'")
                .put("WHERE reason = 'overlap'"),
            sqlite("0001_ledger", "WHERE state = 'queued' AND reason = 'overlap'")
                .put("WHERE reason = 'overlap'"),
        ],
    ),
    condition(
        "the row in the way of a skip or an enqueue is the firing's own",
        "it is told of another firing's",
        "others::a_skip_or_an_enqueue_meets_the_row_of_its_own_firing_only",
        &[
            sqlite("enqueue_refused", "f.namespace = ?1 AND"),
            sqlite("enqueue_refused", "AND f.job = ?2"),
            sqlite("enqueue_refused", "AND f.scheduled_at = ?3"),
            sqlite("enqueue_refused", "AND f.shard = ?4"),
            sqlite("enqueue_refused", "AND f.trigger_key = ?5"),
            sqlite("skip_refused", "f.namespace = ?1 AND"),
            sqlite("skip_refused", "AND f.job = ?2"),
            sqlite("skip_refused", "AND f.scheduled_at = ?3"),
            sqlite("skip_refused", "AND f.shard = ?4"),
            sqlite("skip_refused", "AND f.trigger_key = ?5"),
        ],
    ),
    condition(
        "what is due is queued, and not yet expired",
        "the queue's poll is shown what cannot be claimed",
        "others::what_ended_runs_or_has_expired_is_not_due",
        &[
            postgres("due", "AND state = 'queued'"),
            postgres("due", "AND expires_at > (SELECT clock_timestamp())"),
            sqlite("due", "AND q.state = 'queued'"),
            sqlite("due", "AND now < q.expires_at"),
        ],
    ),
    condition(
        "… due, and of a job that was asked for, in the own namespace",
        "the queue's poll is shown what cannot be claimed",
        "queue::the_queue_gives_what_is_due_oldest_first",
        &[
            postgres("due", "AND due_at <= (SELECT clock_timestamp())"),
            postgres("due", "AND job = ANY ($2)").put("AND $2 = $2"),
            postgres("due", "WHERE namespace = $1").put("WHERE $1 = $1"),
            sqlite("due", "q.due_at <= now AND"),
            sqlite("due", "AND q.job IN (SELECT value FROM json_each(?2))"),
            sqlite("due", "q.namespace = ?1 AND"),
        ],
    ),
    condition(
        "… neither of a paused job nor behind an exclusive run",
        "what cannot be claimed fills the list and starves the rest",
        "queue::the_queue_leaves_out_what_could_not_be_claimed",
        &[
            postgres("due", "AND job.paused_at IS NOT NULL").put("AND job.spec_hash = ''"),
            postgres("due", "AND job.name = waiting.job").put("AND job.name = ''"),
            postgres("due", "AND NOT (exclusive AND").put("AND NOT ("),
            sqlite("due", "AND j.paused_at IS NULL"),
            sqlite("due", "AND b.exclusive = 1").put("AND b.exclusive = 0"),
            sqlite("due", "q.exclusive = 0\n      OR "),
        ],
    ),
    condition(
        "… of the same job and shard",
        "a run of another job keeps a row from being found",
        "others::only_an_exclusive_run_of_the_job_and_shard_is_an_overlap",
        &[
            postgres("due", "AND other.job = waiting.job"),
            postgres("due", "AND other.shard = waiting.shard"),
            postgres("due", "AND other.exclusive"),
            postgres("due", "other.namespace = waiting.namespace AND"),
            sqlite("due", "AND b.job = q.job"),
            sqlite("due", "AND b.shard = q.shard"),
            sqlite("due", "AND b.exclusive = 1"),
            sqlite("due", "b.namespace = q.namespace AND"),
        ],
    ),
    condition(
        "what expires waits, has waited too long, and is ours",
        "rows end that run, or could still run, or are somebody else's",
        "queue::what_waited_too_long_ends_with_its_reason",
        &[
            postgres("expire", "AND expires_at < clock_timestamp()"),
            postgres("expire", "WHERE namespace = $1").put("WHERE $1 = $1"),
            sqlite("expire", "AND q.expires_at <= (SELECT now FROM clock)"),
            sqlite("expire", "q.namespace = ?1 AND"),
        ],
    ),
    condition(
        "… and still waits",
        "an ended row ends again",
        "others::what_ended_runs_or_has_expired_is_not_due",
        &[postgres("expire", "AND state = 'queued'"), sqlite("expire", "AND q.state = 'queued'")],
    ),
    condition(
        "a row that somebody is claiming does not expire",
        "a run under way is ended as expired",
        "in_flight::a_claim_in_flight_keeps_its_row_from_expiring",
        &[postgres("expire", "FOR UPDATE SKIP LOCKED"), postgres("expire", "SKIP LOCKED")],
    ),
    condition(
        "only what runs or waits can be cancelled",
        "a firing that succeeded is cancelled",
        "queue::an_ended_firing_cannot_be_cancelled",
        &[
            postgres("cancel", "AND state IN ('queued', 'running')"),
            sqlite("cancel", "AND state IN ('queued', 'running')"),
        ],
    ),
    condition(
        "… by its number",
        "all of them are",
        "others::a_number_leads_to_its_own_row",
        &[
            postgres("cancel", "id = $2 AND").put("$2 = $2 AND"),
            postgres("firing", "id = $2 AND").put("$2 = $2 AND"),
            sqlite("cancel", "AND id = ?2"),
            sqlite("firing", "AND id = ?2"),
        ],
    ),
    condition(
        "… in its own namespace",
        "a deployment cancels what is its neighbour's",
        "others::a_number_of_another_namespace_leads_nowhere",
        &[
            postgres("cancel", "AND namespace = $1").put("AND $1 = $1"),
            postgres("firing", "AND namespace = $1").put("AND $1 = $1"),
            postgres("attempts", "AND firing.namespace = $1").put("AND $1 = $1"),
            postgres("attempts", "past.firing_id = $2 AND").put("$2 = $2 AND"),
            sqlite("cancel", "namespace = ?1 AND"),
            sqlite("firing", "namespace = ?1 AND"),
            sqlite("attempts", "f.namespace = ?1 AND"),
            sqlite("attempts", "AND a.firing_id = ?2"),
        ],
    ),
    // --- Firings that did not run -----------------------------------------------------------------
    condition(
        "a firing with a row is not skipped",
        "it counts as an outage",
        "skips::a_firing_with_a_row_is_not_skipped",
        &[postgres("skip", "ON CONFLICT DO NOTHING"), sqlite("skip", "ON CONFLICT DO NOTHING")],
    ),
    condition(
        "what retention has passed over is not skipped",
        "a removed row comes back",
        "skips::a_skip_of_an_unknown_job_or_a_pruned_instant_is_refused",
        &[
            postgres("skip", "AND (pruned_before IS NULL OR pruned_before <= $3)"),
            postgres("skip", "namespace = $1 AND name").put("name"),
            postgres("skip", "AND name = $2"),
            sqlite("skip", "AND ?3 >= coalesce(j.pruned_before, ?3)"),
            sqlite("skip", "j.namespace = ?1 AND"),
            sqlite("skip", "AND j.name = ?2"),
        ],
    ),
    condition(
        "an overlap is skipped while something runs",
        "a firing is skipped that could have run",
        "skips::an_overlap_is_skipped_only_while_something_runs",
        &[
            postgres("skip", "AND state = 'running'"),
            postgres("skip", "AND job = $2"),
            postgres("skip", "AND shard = $4"),
            sqlite("skip", "AND b.state = 'running'"),
            sqlite("skip", "AND b.job = ?2"),
            sqlite("skip", "AND b.shard = ?4"),
        ],
    ),
    condition(
        "… that excludes it, and is no neighbour's",
        "a firing is skipped that could have run",
        "others::only_an_exclusive_run_of_the_job_and_shard_is_an_overlap",
        &[
            postgres("skip", "AND exclusive\n"),
            postgres("skip", "namespace = $1 AND job").put("job"),
            sqlite("skip", "AND b.exclusive = 1"),
            sqlite("skip", "b.namespace = ?1 AND"),
        ],
    ),
    condition(
        "gaps are decided from the horizon that stands",
        "a gap is decided twice",
        "gaps::a_decision_from_an_old_horizon_is_void",
        &[
            postgres("decide", "AND greatest(known_since, reconciled_until) = $3").put("AND $3 = $3"),
            sqlite("decide", "AND max(known_since, coalesce(reconciled_until, known_since)) = ?3"),
        ],
    ),
    condition(
        "… as it stands once the lock is held",
        "two replicas decide about a gap",
        "in_flight::a_decision_in_flight_is_waited_for",
        &[postgres("decide", "FOR NO KEY UPDATE")],
    ),
    condition(
        "… and raise that of their own job only",
        "a neighbour's gaps are passed over",
        "gaps::a_decision_moves_the_horizon_of_its_own_job_only",
        &[
            postgres("decide", "namespace = $1 AND name = $2 AND greatest").put("name = $2 AND greatest"),
            postgres("decide", "AND name = $2 AND greatest").put("AND greatest"),
            sqlite("decide", "namespace = ?1 AND"),
            sqlite("decide", "AND name = ?2"),
            postgres("decide", "FROM moment\n    WHERE namespace = $1 AND").put("FROM moment\n    WHERE"),
            postgres("decide", "FROM moment\n    WHERE namespace = $1 AND name = $2")
                .put("FROM moment\n    WHERE namespace = $1"),
        ],
    ),
    condition(
        "the gaps of a paused job are skipped",
        "a pause ends with a burst",
        "gaps::the_gaps_of_a_paused_job_are_skipped",
        &[
            postgres("decide", "asked.run AND NOT paused").put("asked.run"),
            sqlite("fill_gap", "?5 AND j.paused_at IS NULL").put("?5"),
            sqlite("fill_gap", "AND j.name = ?2"),
            sqlite("fill_gap", "j.namespace = ?1 AND"),
        ],
    ),
    condition(
        "what retention has passed over is no gap",
        "a firing whose row was removed runs again",
        "gaps::what_retention_has_passed_over_is_no_gap",
        &[
            postgres("decide", "WHERE pruned_before IS NULL OR pruned_before <= asked.scheduled_at"),
            sqlite("fill_gap", "AND ?3 >= coalesce(j.pruned_before, ?3)"),
        ],
    ),
    condition(
        "what has a row is no gap",
        "it counts as an outage",
        "gaps::a_gap_is_queued_or_skipped_and_what_has_a_row_keeps_it",
        &[
            postgres("decide", "ON CONFLICT DO NOTHING"),
            postgres("decide", "queued AND $5").put("$5"),
            sqlite("fill_gap", "ON CONFLICT DO NOTHING"),
            sqlite("fill_gap", "queued AND ?6").put("?6"),
        ],
    ),
    condition(
        "the horizon is that of the job, and its rows are the schedule's",
        "a firing that nobody has run counts as there",
        "gaps::the_horizon_says_which_firings_of_the_schedule_have_rows",
        &[
            postgres("horizons", "job.namespace = $1 AND"),
            postgres("horizons", "AND job.name = question.name"),
            postgres("horizons", "firing.namespace = $1 AND"),
            postgres("horizons", "AND firing.job = asked.name"),
            postgres("horizons", "AND firing.trigger_key = ''"),
            postgres(
                "horizons",
                "AND firing.scheduled_at > asked.decided_until - asked.back * interval '1 millisecond'",
            ),
            sqlite("horizons", "j.namespace = ?1 AND"),
            sqlite("horizons", "AND j.name = question.value ->> 0"),
            sqlite("horizons", "f.namespace = ?1 AND"),
            sqlite("horizons", "AND f.job = asked.name"),
            sqlite("horizons", "AND f.trigger_key = ''"),
            sqlite("horizons", "AND f.scheduled_at > asked.decided_until - asked.back"),
        ],
    ),
    // --- Jobs and history -------------------------------------------------------------------------
    condition(
        "the watermark rises before rows go",
        "a firing whose row was removed runs again",
        "upkeep::prune_removes_old_ends_and_raises_the_watermark",
        &[
            postgres("prune", "SET pruned_before = greatest(target.pruned_before, before)")
                .put("SET pruned_before = target.pruned_before"),
            postgres("prune", "AND target.name = $2"),
            sqlite("prune_watermark", "SET pruned_before = max(coalesce(pruned_before, ?2), ?2)")
                .put("SET pruned_before = pruned_before")
                .and(&[("prune", " AND f.scheduled_at < j.pruned_before", "")]),
            sqlite("prune_watermark", "f.job = runner_jobs.name AND"),
        ],
    ),
    condition(
        "only what ended long ago goes, of an instant long ago",
        "the history is gone before anybody has read it",
        "upkeep::prune_goes_by_the_instant_and_by_the_end",
        &[
            postgres("prune", "AND scheduled_at < (SELECT before FROM cut)"),
            sqlite("prune", "AND f.scheduled_at < j.pruned_before"),
            sqlite("prune_watermark", "AND f.scheduled_at < ?2"),
            sqlite("prune_watermark", "AND f.finished_at <= ?2").and(&[(
                "prune",
                "AND f.finished_at <= ?2",
                "",
            )]),
        ],
    ),
    condition(
        "only what has ended goes",
        "a run under way is removed, and its firing runs again",
        "upkeep::prune_keeps_what_has_not_ended",
        &[
            postgres("prune", "AND finished_at < (SELECT before FROM cut)"),
            sqlite("prune", "AND f.finished_at <= ?2"),
            sqlite("prune_watermark", "f.namespace = ?1 AND"),
        ],
    ),
    condition(
        "… of the own namespace and job",
        "a neighbour's history goes",
        "upkeep::prune_removes_old_ends_and_raises_the_watermark",
        &[
            postgres("prune", "target.namespace = $1 AND"),
            postgres("prune", "namespace = $1 AND job").put("job"),
            sqlite("prune_watermark", "namespace = ?1\n").put("true\n"),
        ],
    ),
    condition(
        "… and is no neighbour's",
        "a deployment removes what its neighbour keeps",
        "others::a_prune_leaves_what_a_neighbour_keeps_below_its_watermark",
        &[
            sqlite("prune", "j.namespace = ?1\n").put("true\n"),
            sqlite("prune", "f.namespace = j.namespace AND"),
        ],
    ),
    condition(
        "the job's row is locked before rows go",
        "a prune and a claim wait for each other until the server ends one",
        "in_flight::a_prune_removes_nothing_before_a_claim_in_flight_is_through",
        &[postgres("prune", "FOR NO KEY UPDATE")],
    ),
    condition(
        "a job is paused and resumed by its own name, in its own namespace",
        "everything stops, or goes on",
        "upkeep::a_pause_keeps_who_and_why",
        &[
            postgres("pause", "namespace = $1 AND").put("$1 = $1 AND"),
            postgres("pause", "AND name = $2").put("AND $2 = $2"),
            postgres("resume", "AND name = $2").put("AND $2 = $2"),
            sqlite("pause", "namespace = ?1 AND"),
            sqlite("pause", "AND name = ?2"),
            sqlite("resume", "AND name = ?2"),
        ],
    ),
    condition(
        "a pause that stands keeps its beginning",
        "nobody knows how long a job has been paused",
        "upkeep::a_pause_keeps_who_and_why",
        &[
            postgres("pause", "coalesce(paused_at, clock_timestamp())").put("clock_timestamp()"),
            sqlite("pause", "coalesce(paused_at, CAST(round(unixepoch('subsec') * 1000) AS INTEGER))")
                .put("CAST(round(unixepoch('subsec') * 1000) AS INTEGER)"),
        ],
    ),
    condition(
        "a job is known anew only when its schedule changed",
        "every start passes over the gaps before it",
        "upkeep::a_job_is_known_since_its_schedule_changed",
        &[
            postgres("register", "WHERE job.spec_hash <> excluded.spec_hash"),
            sqlite("register", "WHERE runner_jobs.spec_hash <> excluded.spec_hash"),
        ],
    ),
    condition(
        "counts, jobs and history are those of the own namespace",
        "a deployment shows its neighbour's",
        "reading::the_counts_are_those_of_the_rows",
        &[postgres("counts", "namespace = $1").put("$1 = $1"), sqlite("counts", "WHERE namespace = ?1")],
    ),
    condition(
        "the reasons of a no are those of the job itself",
        "a claim is refused, and told of another job's pause",
        "others::the_reason_of_a_no_is_that_of_its_own_job",
        &[
            postgres("refusal", "job.namespace = $1 AND job.name").put("job.name"),
            postgres("refusal", "AND job.name = $2"),
            sqlite("claim_refused", "j.namespace = ?1 AND"),
            sqlite("claim_refused", "AND j.name = ?2"),
            sqlite("enqueue_refused", "j.namespace = ?1 AND"),
            sqlite("enqueue_refused", "AND j.name = ?2"),
            sqlite("skip_refused", "j.namespace = ?1 AND"),
            sqlite("skip_refused", "AND j.name = ?2"),
            sqlite("enqueue_refused", "AND j.paused_at IS NULL"),
            sqlite("enqueue_refused", "AND ?3 >= coalesce(j.pruned_before, ?3)"),
            sqlite("skip_refused", "AND ?3 >= coalesce(j.pruned_before, ?3)"),
        ],
    ),
    condition(
        "a pause is that of the own namespace, and so is its end",
        "a deployment stops its neighbour, or sets it going",
        "others::a_pause_is_that_of_its_own_namespace",
        &[
            postgres("due", "job.namespace = waiting.namespace AND"),
            postgres("resume", "namespace = $1 AND").put("$1 = $1 AND"),
            sqlite("due", "j.namespace = q.namespace AND"),
            sqlite("resume", "namespace = ?1 AND"),
        ],
    ),
    condition(
        "a skip is written whether something runs or not, unless it is for an overlap",
        "a missed firing has no row",
        "skips::a_skip_writes_a_row_that_ends_the_firing",
        &[postgres("skip", "NOT $9 OR").put("$9 AND"), sqlite("skip", "?9 = 0\n      OR ")],
    ),
    condition(
        "what runs, and only that, keeps an exclusive row from being found",
        "a row that waits keeps itself waiting",
        "queue::the_queue_gives_what_is_due_oldest_first",
        &[
            postgres("due", "other.state = 'running' AND"),
            sqlite("due", "b.state = 'running' AND"),
            sqlite("due", "AND j.name = q.job"),
        ],
    ),
    condition(
        "superseded attempts are those of the firing",
        "its history shows each of them many times",
        "others::a_number_of_another_namespace_leads_nowhere",
        &[
            postgres("attempts", "firing.id = past.firing_id").put("true"),
            sqlite("attempts", "f.id = a.firing_id").put("true"),
        ],
    ),
    condition(
        "a requeue that is recorded is one of the own namespace",
        "a worker is told that its result counts, and it does not",
        "others::an_end_that_was_recorded_is_told_from_any_other",
        &[postgres("settle_found", "firing.id = firing_id").put("true")],
    ),
    condition(
        "a transaction ends a run of its own namespace only",
        "a deployment ends its neighbour's run",
        "effects::a_transaction_belongs_to_a_number_and_a_fence",
        &[
            postgres("effect_settle", "AND namespace = $1").put("AND $1 = $1").and(&[(
                "effect_begin",
                "AND namespace = $1",
                "AND $1 = $1",
            )]),
            sqlite("effect_settle", "namespace = ?1 AND").and(&[("effect_ours", "namespace = ?1 AND", "")]),
        ],
    ),
    condition(
        "… and one that still runs",
        "a run that was swept commits",
        "effects::a_run_that_was_taken_over_gets_no_transaction",
        &[sqlite("effect_settle", "AND state = 'running'").and(&[(
            "effect_ours",
            "AND state = 'running'",
            "",
        )])],
    ),
    condition(
        "the next attempt throws out its own firing's sessions only",
        "another firing's work is undone",
        "effects::in_postgres::the_next_attempt_throws_out_what_the_last_one_left_at_work",
        &[postgres("effect_evict", "application_name LIKE substring($1 from '.*/') || '%' AND")],
    ),
    condition(
        "a watermark rises only for a job that loses something",
        "a young ledger cannot be backfilled",
        "upkeep::prune_keeps_what_has_not_ended",
        &[
            postgres("prune_jobs", "namespace = $1 AND").put("$1 = $1 AND"),
            postgres("prune_jobs", "firing.namespace = job.namespace AND"),
            postgres("prune_jobs", "AND firing.job = job.name"),
        ],
    ),
    condition(
        "… of an instant long ago, that ended long ago",
        "a firing that is still to come is never claimed",
        "upkeep::prune_goes_by_the_instant_and_by_the_end",
        &[
            postgres(
                "prune_jobs",
                "AND firing.scheduled_at < (SELECT clock_timestamp() - $2 * interval '1 millisecond')",
            ),
            postgres(
                "prune_jobs",
                "AND firing.finished_at < (SELECT clock_timestamp() - $2 * interval '1 millisecond')",
            ),
        ],
    ),
    condition(
        "a prune is of one job",
        "one job's retention is another's",
        "upkeep::prune_removes_old_ends_and_raises_the_watermark",
        &[postgres("prune", "namespace = $1 AND name").put("name"), postgres("prune", "AND name = $2")],
    ),
    condition(
        "jobs are listed by namespace",
        "a deployment shows its neighbour's",
        "upkeep::a_job_is_known_since_its_schedule_changed",
        &[postgres("jobs", "namespace = $1").put("$1 = $1"), sqlite("jobs", "WHERE namespace = ?1")],
    ),
    condition(
        "the history is what was asked for",
        "somebody looks at the wrong rows",
        "reading::the_history_is_filtered_and_newest_first",
        &[
            postgres("history", "namespace = known.namespace AND"),
            postgres("history", "AND job = known.name"),
            postgres("history", "OR state = $3").put("OR true"),
            postgres("history", "AND scheduled_at >= coalesce($4, '-infinity'::timestamptz)")
                .put("AND coalesce($4, 'infinity') IS NOT NULL"),
            postgres("history", "AND scheduled_at <= coalesce($5, 'infinity'::timestamptz)")
                .put("AND coalesce($5, 'infinity') IS NOT NULL"),
            postgres("history", "known.namespace = $1 AND").put("$1 = $1 AND"),
            postgres("history", "OR known.name = $2").put("OR true"),
            postgres("history", "$3 IS NULL OR"),
            postgres("history", "$2 IS NULL OR"),
            sqlite("history", "namespace = ?1\n").put("true\n"),
            sqlite("history", "OR job = ?2").put("OR true"),
            sqlite("history", "OR state = ?3").put("OR true"),
            sqlite("history", "OR scheduled_at >= ?4").put("OR true"),
            sqlite("history", "OR scheduled_at <= ?5").put("OR true"),
            sqlite("history", "?2 IS NULL OR"),
            sqlite("history", "?3 IS NULL OR"),
            sqlite("history", "?4 IS NULL OR"),
            sqlite("history", "?5 IS NULL OR"),
        ],
    ),
    // --- How often a firing has failed ------------------------------------------------------------
    condition(
        "the failures that a claim tells of are those of its own firing",
        "a firing runs out of attempts by the failures of others",
        "runs::only_failed_runs_count_as_failures",
        &[
            postgres("claim_queued", "firing_id = runner_firings.id AND"),
            postgres("confirm", "firing_id = runner_firings.id AND"),
            postgres("refusal", "firing_id = mine.id AND"),
            sqlite("claim_queued", "firing_id = runner_firings.id AND"),
            sqlite("confirm", "firing_id = runner_firings.id AND"),
            sqlite("claim_refused", "a.firing_id = f.id AND"),
        ],
    ),
    condition(
        "… and only those of runs that failed by themselves",
        "a drain, or an owner that vanished, uses up an attempt",
        "runs::only_failed_runs_count_as_failures",
        &[
            postgres("claim_queued", "AND runner_attempts.reason = 'retry'"),
            postgres("confirm", "AND runner_attempts.reason = 'retry'"),
            postgres("refusal", "AND runner_attempts.reason = 'retry'"),
            sqlite("claim_queued", "AND runner_attempts.reason = 'retry'"),
            sqlite("confirm", "AND runner_attempts.reason = 'retry'"),
            sqlite("claim_refused", "AND a.reason = 'retry'"),
        ],
    ),
    // --- Which server keeps the ledger ------------------------------------------------------------
    condition(
        "the count moves for another cluster",
        "it moves with every promotion, too, for nothing",
        "servers::only_another_cluster_moves_the_count_and_never_back",
        &[postgres("adopt", "WHERE noted.system <> here.system")],
    ),
    condition(
        "a server is noted that is another one than before",
        "each replica that starts raises the alarm of a failover",
        "servers::a_cluster_that_the_ledger_was_moved_to_mints_above_the_former_timelines",
        &[postgres("adopt", "AND (noted.system, noted.timeline) <> (here.system, here.timeline)")],
    ),
    condition(
        "the note is locked: an adoption in flight is waited for",
        "two replicas move the count for the same cluster",
        "in_flight::an_adoption_in_flight_is_not_made_twice",
        &[postgres("adopt", "FOR NO KEY UPDATE")],
    ),
];

/// Conditions that say what others say already, and why they stay.
#[derive(Debug)]
pub(crate) struct Spare {
    pub(crate) dialect: Dialect,
    pub(crate) conditions: &'static [(&'static str, &'static str)],
    pub(crate) covered: &'static str,
}

pub(crate) const SPARE: &[Spare] = &[
    Spare {
        dialect: Dialect::Postgres,
        conditions: &[("sweep", "firing.state = 'running' AND")],
        covered: "a lease is NULL when nothing runs, so the lease as seen tells; it lets the sweep use its index",
    },
    Spare {
        dialect: Dialect::Postgres,
        conditions: &[
            ("refusal", "namespace = $1 AND job = $2 AND shard = $4"),
            ("refusal", "state = 'queued' AND reason = 'overlap'"),
        ],
        covered: "asked only of an enqueue that the index has refused; without them it would not look again when the row \
                  in its way has just gone",
    },
    Spare {
        dialect: Dialect::Postgres,
        conditions: &[
            ("effect_evict", "datname = current_database()"),
            ("effect_evict", "usename = session_user"),
        ],
        covered: "the mark names the table by its number, and a stranger's session could not be ended; they say so aloud",
    },
    Spare {
        dialect: Dialect::Postgres,
        conditions: &[("effect_begin", "current_setting(name, true) IS NOT NULL")],
        covered: "none: an older server does not know all of these settings, and would refuse the statement",
    },
    Spare {
        dialect: Dialect::Postgres,
        conditions: &[
            ("adopt", "WHERE only_row = 1"),
            ("adopt", "server.only_row = 1"),
            ("adopt", "ON true"),
        ],
        covered: "none: the table has one row; named by its key, or the planner expects thousands",
    },
    Spare {
        dialect: Dialect::Sqlite,
        conditions: &[("sweep_look", "AND state = 'running'")],
        covered: "a lease is NULL when nothing runs, so the lease as seen tells; it lets the sweep use its index",
    },
    Spare {
        dialect: Dialect::Sqlite,
        conditions: &[("prune", "AND f.job = j.name")],
        covered: "whatever ended long ago of an instant long ago may go; it is how the rows are found by the index",
    },
    Spare {
        dialect: Dialect::Sqlite,
        conditions: &[("fill_gap", "WHERE true")],
        covered: "none: without it the grammar takes ON CONFLICT for a join",
    },
];
