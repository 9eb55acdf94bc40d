//! The conditions of the protocol, and what each is there for.

use super::properties::{
    AT_MOST_ONCE, CANCELLED, CRASH_LIMIT, EFFECT_IS_SUCCESS, FENCES_GROW, HISTORY, LICENSED, NO_INTERLEAVING,
    NO_OVERLAP, NO_VOID_LICENCE, ONE_EFFECT, ONE_START, OPEN_ROWS_STAY, OWN_END, PAUSED, STAYS_REMOVED,
    SWEPT_AS_SEEN, TERMINAL, TRUE_ANSWER,
};

/// Declares the conditions, and lists for each the words of the page, the setting in which it is
/// taken out, and the promises that it then breaks.
macro_rules! conditions {
    ($($name:ident: $words:literal, $setting:literal => [$($breaks:ident),+];)+) => {
        /// One condition of one statement, or of the executor where it says so.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Condition {
            /// Not needed while the lease is compared.
            StateOfSweep,
            $($name),+
        }

        pub(crate) const NEEDED: &[Needed] = &[
            $(Needed { condition: Condition::$name, words: $words, setting: $setting, breaks: &[$($breaks),+] }),+
        ];
    };
}

/// A condition, and what breaks without it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Needed {
    pub(crate) condition: Condition,
    /// As docs/protocol.md has it.
    pub(crate) words: &'static str,
    pub(crate) setting: &'static str,
    pub(crate) breaks: &'static [&'static str],
}

conditions! {
    OneRow: "claim_fresh: `ON CONFLICT DO NOTHING` on `runner_firings_once`", "transaction" => [ONE_EFFECT, TERMINAL];
    StateOfClaim: "claim_queued: `state = 'queued'`", "queue" => [ONE_EFFECT, TERMINAL];
    FenceOfClaim: "claim_queued: `fence = nextval(…)`", "transaction" => [FENCES_GROW, ONE_START];
    PauseGateOfFresh: "claim_fresh: `paused_at IS NULL`", "pause" => [PAUSED];
    PauseGateOfQueued: "claim_queued: `paused_at IS NULL`", "pause" => [PAUSED];
    WatermarkOfClaim: "claim_fresh: `pruned_before <= $3`", "retention" => [STAYS_REMOVED, ONE_EFFECT];
    WatermarkOfEnqueue: "enqueue, decide: `pruned_before <= …`", "retention" => [STAYS_REMOVED, ONE_EFFECT];
    WatermarkOfSkip: "skip: `pruned_before <= $3`", "retention" => [STAYS_REMOVED];
    LockOfJob: "claim: `FOR NO KEY UPDATE` on the job's row", "gate" => [PAUSED, STAYS_REMOVED];
    FenceUnderLock: "claim: the fence is minted after that lock is held", "gate" => [FENCES_GROW];
    RunningIndex: "index: `runner_firings_running` is unique", "overlap" => [NO_OVERLAP, NO_INTERLEAVING];
    StateOfRepeatedClaim: "refusal: a repeated claim is won only while the row is `running`", "external" => [NO_VOID_LICENCE];
    ClaimIdOfRepeatedClaim: "refusal: a repeated claim is won only with its own `claim_id`", "external" => [ONE_START];
    AskAfterUnknown: "executor: unknown is not yes", "external" => [LICENSED, ONE_START];
    ClaimIdNotOwner: "confirm: `claim_id = $6` (the replica's name will not do)", "at most once" => [ONE_START, AT_MOST_ONCE];
    ClaimIdNotFence: "confirm: `claim_id = $6` (the expected fence will not do)", "at most once" => [ONE_START, AT_MOST_ONCE];
    StateOfConfirm: "confirm: `state = 'running'`", "external" => [NO_VOID_LICENCE];
    FenceOfHeartbeat: "heartbeat: `fence = $3`", "external" => [NO_VOID_LICENCE];
    StateOfHeartbeat: "heartbeat: `state = 'running'`", "external" => [NO_VOID_LICENCE];
    FenceOfSettle: "settle_terminal: `fence = $3`", "external" => [OWN_END];
    StateOfSettle: "settle_terminal: `state = 'running'`", "cancel" => [TERMINAL];
    LateSettleIsAResult: "settle_terminal: of a lost row only `succeeded` and `failed`", "at most once" => [TERMINAL];
    FenceOfRequeue: "settle_requeue: `fence = $3`", "transaction" => [OWN_END];
    StateOfRequeue: "settle_requeue: `state = 'running'`", "transaction" => [ONE_EFFECT, EFFECT_IS_SUCCESS, TERMINAL];
    CancelOfRequeue: "settle_requeue: `cancelled` when a cancel was asked for", "cancel" => [CANCELLED];
    HistoryOfRequeue: "settle_requeue: the attempt goes to `runner_attempts`", "transaction" => [HISTORY];
    FenceOfFound: "settle_found: `fence = $3`", "external" => [TRUE_ANSWER];
    EndingOfFound: "settle_found: the same state and reason", "external" => [TRUE_ANSWER];
    CancelOfFound: "settle_found: a requeue may have cancelled", "cancel" => [TRUE_ANSWER];
    NoHistoryOfFound: "settle_found: but not one that was swept before it was cancelled", "cancel" => [TRUE_ANSWER];
    HistoryOfFound: "settle_found: a requeue may stand in `runner_attempts`", "external" => [TRUE_ANSWER];
    FenceOfEffect: "effect: `fence = …`", "transaction" => [OWN_END];
    StateOfEffect: "effect: `state = 'running'`", "transaction" => [TERMINAL];
    OneTransaction: "effect: work and settle in one transaction", "transaction" => [ONE_EFFECT, EFFECT_IS_SUCCESS];
    FenceOfSweep: "sweep: the fence as seen", "sweeps" => [SWEPT_AS_SEEN];
    LeaseOfSweep: "sweep: the lease as seen", "sweeps" => [SWEPT_AS_SEEN];
    DeliveryOfSweep: "sweep: `lost` for at-most-once", "at most once" => [AT_MOST_ONCE];
    CrashLimitOfSweep: "sweep: `failed` above max_crashes", "transaction" => [CRASH_LIMIT];
    CancelOfSweep: "sweep: `cancelled` when a cancel was asked for", "cancel" => [CANCELLED];
    HistoryOfSweep: "sweep: the attempt goes to `runner_attempts`", "transaction" => [HISTORY];
    DeliveryOfInterruption: "executor: an interrupted at-most-once run is `lost`, not queued", "at most once" => [AT_MOST_ONCE];
    StateOfCancel: "cancel: `state IN ('queued', 'running')`", "cancel" => [TERMINAL];
    EndedBeforePrune: "prune: `finished_at < before`", "retention" => [OPEN_ROWS_STAY];
}
