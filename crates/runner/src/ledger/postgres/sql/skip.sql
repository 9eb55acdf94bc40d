-- skip
-- $1 namespace  $2 job  $3 scheduled_at  $4 shard  $5 trigger_key  $6 origin  $7 reason  $8 detail
-- $9 only_while_running
-- The lock on the job keeps a prune in flight from removing the row's predecessor in between.
WITH job AS MATERIALIZED (
    SELECT FROM runner_jobs
    WHERE namespace = $1 AND name = $2 AND (pruned_before IS NULL OR pruned_before <= $3)
    FOR NO KEY UPDATE
), moment AS MATERIALIZED (
    SELECT clock_timestamp() AS now FROM job
)
INSERT INTO runner_firings (namespace, job, scheduled_at, shard, trigger_key, origin, state, reason,
    exclusive, delivery, created_at, finished_at, error)
SELECT $1, $2, $3, $4, $5, $6, 'skipped', $7, false, 'at_least_once', now, now, $8
FROM moment
WHERE NOT $9 OR EXISTS (
    SELECT FROM runner_firings
    WHERE namespace = $1 AND job = $2 AND shard = $4 AND state = 'running' AND exclusive
)
ON CONFLICT DO NOTHING
RETURNING id
