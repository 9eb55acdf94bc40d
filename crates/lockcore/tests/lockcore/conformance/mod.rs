//! One suite of rules that every backend passes.

mod bench;
mod rules;

/// Runs each rule over each backend.
macro_rules! conformance {
    ($($rule:ident,)*) => {
        mod memory {
            $(
                #[tokio::test]
                async fn $rule() {
                    super::rules::$rule(super::bench::Bench::memory()).await;
                }
            )*
        }

        #[cfg(feature = "redis")]
        mod redis {
            $(
                #[tokio::test]
                async fn $rule() {
                    super::rules::$rule(super::bench::Bench::redis()).await;
                }
            )*
        }
    };
}

conformance! {
    // 1. Mutual exclusion and expiry in one step.
    a_lock_is_taken_together_with_its_expiry,
    an_expired_lock_is_free_for_the_next,
    one_of_many_gets_the_lock,
    // 2. A value unique to each acquisition.
    each_acquisition_has_a_value_of_its_own_that_losers_can_read,
    the_same_token_acquires_again_without_moving_the_expiry,
    // 3. Release compares and deletes.
    a_release_deletes_only_its_own_lock,
    a_release_after_expiry_is_a_mismatch_and_spares_the_next_holder,
    // 4. Renewal compares and moves the expiry.
    a_renewal_sets_its_own_lock_back_to_the_full_ttl_and_no_other,
    a_lost_lock_is_not_brought_back_by_renewal,
    a_lock_that_is_lost_is_told_to_its_guard,
    // 5. Renewal is capped.
    renewals_end_at_the_cap_and_the_lock_runs_out,
    // 6. Waiting is bounded, with backoff.
    a_held_lock_is_waited_for_within_bounds_and_with_pauses,
    a_released_lock_goes_to_one_who_waits,
    // 7. Keys carry prefix and dimension.
    shards_instants_names_scopes_and_prefixes_lock_apart,
    // 8. Three signals: how acquisitions end, how long locks are held, releases that mismatch.
    acquisitions_holds_and_mismatches_can_be_counted,
    // The done marker.
    a_done_marker_answers_late_comers_for_its_subject_until_it_expires,
    a_mismatched_release_leaves_no_done_marker,
    a_repeated_token_is_acquired_even_when_the_work_is_done,
    // Odd values.
    expiries_below_a_millisecond_are_taken_as_one,
}
