-- enqueue
-- $1 namespace  $2 job  $3 scheduled_at  $4 shard  $5 trigger_key  $6 origin  $7 reason  $8 exclusive
-- $9 delivery  $10 due_in (ms)  $11 expires_in (ms)
WITH job AS MATERIALIZED (
    SELECT FROM runner_jobs
    WHERE namespace = $1 AND name = $2
      AND paused_at IS NULL
      AND (pruned_before IS NULL OR pruned_before <= $3)
    FOR NO KEY UPDATE
), moment AS MATERIALIZED (
    SELECT clock_timestamp() AS now FROM job
)
INSERT INTO runner_firings (namespace, job, scheduled_at, shard, trigger_key, origin, state, reason,
    exclusive, delivery, due_at, expires_at, created_at)
SELECT $1, $2, $3, $4, $5, $6, 'queued', $7, $8, $9,
    now + $10 * interval '1 millisecond', now + $11 * interval '1 millisecond', now
FROM moment
ON CONFLICT DO NOTHING
RETURNING id
