//! What every ledger must do: one suite, held against each of them.

mod claims;
mod effects;
mod gaps;
mod others;
mod queue;
mod races;
mod reading;
mod runs;
mod skips;
mod sweeps;
mod upkeep;

/// Makes a test of each claim for each ledger. A claim that is left out is dead code, and so refused.
macro_rules! conformance {
    (every ledger { $($rooms:tt)+ } every database { $($more:tt)+ }) => {
        mod postgres { conformance!(@ crate::fixture::Postgres: $($rooms)+ $($more)+); }
        mod postgres_pooled { conformance!(@ crate::fixture::Pooled: $($rooms)+ $($more)+); }
        mod sqlite { conformance!(@ crate::fixture::sqlite::Sqlite: $($rooms)+ $($more)+); }
        mod memory { conformance!(@ crate::fixture::memory::Memory: $($rooms)+); }
    };
    (@ $fixture:ty: $($room:ident { $($claim:ident)+ })+) => {
        $(mod $room {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $claim() {
                let site = crate::fixture::Site::<$fixture>::open().await;
                let others = crate::conformance::others::Others::beside(&site).await;
                crate::conformance::$room::$claim(&site).await;
                others.are_as_they_were().await;
            })+
        })+
    };
}

conformance! {
    every ledger {
        claims {
            a_claimed_firing_is_a_duplicate_for_everyone_else
            a_claim_repeated_with_its_own_id_is_the_same_win
            a_firing_that_ended_is_a_duplicate
            a_duplicate_is_told_before_an_overlap
            an_exclusive_run_refuses_another_of_its_job_and_shard
            runs_of_other_shards_and_other_jobs_do_not_overlap
            runs_that_are_not_exclusive_do_not_overlap
            shards_and_trigger_keys_make_different_firings
            a_queued_row_that_would_overlap_stays_queued
            a_paused_job_is_not_claimed_until_it_is_resumed
            an_unknown_job_is_not_claimed
            a_queued_row_that_is_gone_with_its_job_is_of_an_unknown_job
            a_firing_of_the_future_is_told_how_long_to_wait
            a_clock_that_runs_a_little_ahead_is_let_through
            a_firing_past_its_start_deadline_is_too_late
            a_queued_row_is_not_claimed_before_it_is_due
            a_queued_row_has_no_start_deadline_and_no_watermark
            a_queued_row_that_was_taken_is_a_duplicate
            confirm_knows_the_claim_that_is_running_and_no_other
            confirm_does_not_know_a_run_that_was_swept
            fences_grow_with_every_claim
            namespaces_do_not_see_each_other
            times_are_the_ledgers
        }
        races {
            one_of_twenty_claims_wins
            one_of_twenty_claims_wins_a_queued_row
            one_of_twenty_exclusive_firings_of_a_job_runs
            one_of_twenty_sweeps_takes_a_run
            one_of_twenty_settles_of_rivals_is_recorded
            no_claim_wins_after_a_pause_has_returned
            a_pruned_firing_never_runs_again
            the_later_claim_has_the_higher_fence
        }
        runs {
            a_heartbeat_moves_the_lease
            a_heartbeat_brings_the_wish_to_cancel
            a_heartbeat_revives_a_lease_that_nobody_took
            a_heartbeat_of_anything_but_the_run_is_lost
            each_end_is_written_as_it_was_said
            output_of_any_kind_does_not_keep_a_run_from_ending
            a_settle_repeated_is_recorded_again
            another_end_does_not_change_a_terminal_row
            a_settle_after_the_lease_counts_while_nobody_took_over
            a_settle_after_a_takeover_is_fenced
            a_lost_run_takes_its_late_result_once
            a_lost_run_takes_no_other_end
            a_requeued_run_waits_and_runs_again_with_a_new_fence
            a_requeue_repeated_is_recorded_even_after_the_next_claim
            only_crashed_runs_count_as_crashes
            only_failed_runs_count_as_failures
            a_wish_to_cancel_is_not_lost_with_a_requeue
        }
        skips {
            a_skip_writes_a_row_that_ends_the_firing
            a_firing_with_a_row_is_not_skipped
            an_overlap_is_skipped_only_while_something_runs
            a_skip_of_a_paused_job_is_written
            a_skip_of_an_unknown_job_or_a_pruned_instant_is_refused
        }
        queue {
            a_queued_firing_has_not_run_and_has_no_fence
            a_firing_with_a_row_is_not_queued
            one_waits_for_an_overlap
            nothing_is_queued_for_a_paused_unknown_or_pruned_job
            the_queue_gives_what_is_due_oldest_first
            the_queue_leaves_out_what_could_not_be_claimed
            what_waited_too_long_ends_with_its_reason
            a_queued_firing_is_cancelled_at_once
            an_ended_firing_cannot_be_cancelled
        }
        sweeps {
            a_vanished_owners_firing_is_queued_again_with_its_history
            a_vanished_owner_of_an_at_most_once_run_leaves_it_lost
            a_firing_that_keeps_losing_its_owner_ends_as_a_crash_loop
            a_vanished_owner_of_a_run_to_be_cancelled_leaves_it_cancelled
            a_swept_run_cancelled_in_the_queue_is_not_its_owners_requeue
            a_heartbeat_in_between_makes_the_sweep_miss
            a_takeover_in_between_makes_the_sweep_miss
            a_living_lease_is_not_swept
            a_swept_owner_can_do_nothing_more
            the_running_list_shows_what_is_left_of_each_lease
        }
        upkeep {
            a_job_is_known_since_its_schedule_changed
            a_pause_keeps_who_and_why
            prune_removes_old_ends_and_raises_the_watermark
            prune_keeps_what_has_not_ended
            prune_goes_by_the_instant_and_by_the_end
            prune_works_in_batches
        }
        gaps {
            of_twenty_replicas_one_decides_about_a_gap
            a_decision_from_an_old_horizon_is_void
            a_horizon_in_the_future_is_lowered_but_not_below_the_registration
            a_decision_moves_the_horizon_of_its_own_job_only
            a_gap_is_queued_or_skipped_and_what_has_a_row_keeps_it
            the_gaps_of_a_paused_job_are_skipped
            what_retention_has_passed_over_is_no_gap
            the_horizon_says_which_firings_of_the_schedule_have_rows
        }
        others {
            a_claim_meets_the_row_of_its_own_firing_only
            a_skip_or_an_enqueue_meets_the_row_of_its_own_firing_only
            an_overlap_names_the_exclusive_run_of_its_own_job_and_shard
            only_an_exclusive_run_of_the_job_and_shard_is_an_overlap
            a_queued_row_is_taken_alone_and_through_the_gate_of_its_own_job
            a_claim_is_confirmed_for_the_firing_that_was_claimed_only
            a_run_is_kept_and_ended_by_its_own_number_and_fence_only
            an_end_that_was_recorded_is_told_from_any_other
            a_run_is_swept_by_its_own_number_fence_and_lease_only
            what_ended_or_waits_is_not_running
            what_ended_runs_or_has_expired_is_not_due
            a_number_of_another_namespace_leads_nowhere
            a_number_leads_to_its_own_row
            the_reason_of_a_no_is_that_of_its_own_job
            a_pause_is_that_of_its_own_namespace
            a_prune_leaves_what_a_neighbour_keeps_below_its_watermark
            the_waiting_overlap_is_one_of_its_own_job_and_shard
        }
        reading {
            the_history_is_filtered_and_newest_first
            the_counts_are_those_of_the_rows
            a_firing_that_is_not_there_is_none
        }
    }
    // Work and the end of its run, in one transaction.
    every database {
        effects {
            a_commit_ends_the_firing_and_keeps_the_work
            what_is_dropped_without_a_commit_is_undone
            a_run_that_was_taken_over_gets_no_transaction
            a_transaction_belongs_to_a_number_and_a_fence
            a_commit_ends_its_own_firing_only
            a_run_commits_once
            a_run_has_one_transaction_at_a_time
            a_nested_transaction_does_not_commit_the_work
            a_transaction_that_was_ended_by_a_statement_does_not_end_the_firing
            a_run_without_a_ledger_gets_no_transaction
            the_connection_is_that_of_the_ledgers_database
            an_unknown_commit_is_answered_by_the_row
        }
    }
}
