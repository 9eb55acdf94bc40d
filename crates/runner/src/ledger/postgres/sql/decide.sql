-- decide
-- $1 namespace  $2 job  $3 decided until, as it was read  $4 decided until, from now on
-- $5 exclusive  $6 delivery  $7 expires in (ms)  $8 instants  $9 shards  $10 run or miss  $11 details
-- Under the job's row lock, so that of all replicas one decides: the others find another horizon.
-- Claiming what it queues is left to the corridor.
WITH job AS MATERIALIZED (
    SELECT paused_at, pruned_before FROM runner_jobs
    WHERE namespace = $1 AND name = $2 AND greatest(known_since, reconciled_until) = $3
    FOR NO KEY UPDATE
), moment AS MATERIALIZED (
    SELECT clock_timestamp() AS now, paused_at IS NOT NULL AS paused, pruned_before FROM job
), raised AS (
    -- A job that was registered while the clock was ahead would hold the horizon there.
    UPDATE runner_jobs SET reconciled_until = $4, known_since = least(known_since, moment.now)
    FROM moment
    WHERE namespace = $1 AND name = $2
), gap AS MATERIALIZED (
    SELECT asked.scheduled_at, asked.shard, asked.run AND NOT paused AS queued, paused, asked.detail, now
    FROM moment,
        unnest($8::timestamptz[], $9::int[], $10::bool[], $11::text[])
            AS asked (scheduled_at, shard, run, detail)
    WHERE pruned_before IS NULL OR pruned_before <= asked.scheduled_at
), written AS (
    INSERT INTO runner_firings (namespace, job, scheduled_at, shard, trigger_key, origin, state, reason,
        exclusive, delivery, due_at, expires_at, created_at, finished_at, error)
    SELECT $1, $2, scheduled_at, shard, '', 'catch_up',
        CASE WHEN queued THEN 'queued' ELSE 'skipped' END,
        CASE WHEN queued THEN 'catch_up' WHEN paused THEN 'paused' ELSE 'missed' END,
        queued AND $5, $6,
        CASE WHEN queued THEN now END,
        CASE WHEN queued THEN now + $7 * interval '1 millisecond' END,
        now,
        CASE WHEN NOT queued THEN now END,
        detail
    FROM gap
    ORDER BY scheduled_at, shard
    ON CONFLICT DO NOTHING
)
SELECT EXISTS (SELECT FROM moment) AS decided
