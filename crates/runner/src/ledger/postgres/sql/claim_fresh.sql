-- claim_fresh
-- $1 namespace  $2 job  $3 scheduled_at  $4 shard  $5 trigger_key  $6 origin  $7 claim_id  $8 owner
-- $9 exclusive  $10 delivery  $11 lease (ms)  $12 not_after (ms)  $13 skew (ms)
-- The job's row stays locked until the commit, and the clock is read and the fence minted only after
-- the lock: so a pause that has returned, or a prune in flight, meets no claim that passed the gate
-- before it, and of two claims the later commit has the higher fence.
WITH job AS MATERIALIZED (
    SELECT FROM runner_jobs
    WHERE namespace = $1 AND name = $2
      AND paused_at IS NULL
      AND (pruned_before IS NULL OR pruned_before <= $3)
    FOR NO KEY UPDATE
), moment AS MATERIALIZED (
    SELECT clock_timestamp() AS now FROM job
)
INSERT INTO runner_firings (namespace, job, scheduled_at, shard, trigger_key, origin, state, attempt,
    fence, claim_id, owner, exclusive, delivery, lease_until, created_at, started_at)
SELECT $1, $2, $3, $4, $5, $6, 'running', 1,
    runner_timeline() * 1000000000000 + nextval('runner_fence'),
    $7, $8, $9, $10, now + $11 * interval '1 millisecond', now, now
FROM moment
WHERE $3 <= now + $13 * interval '1 millisecond'
  AND now <= $3 + $12 * interval '1 millisecond'
ON CONFLICT DO NOTHING
RETURNING id, fence, attempt, crashes, 0 AS failures, started_at
