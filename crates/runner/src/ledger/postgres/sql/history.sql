-- history
-- $1 namespace  $2 job  $3 state  $4 from  $5 until  $6 limit
-- The newest of each job by the index of runner_firings_once, then the newest of those: the table
-- may hold millions of rows and needs no further index for this.
SELECT firing.*
FROM runner_jobs AS known
CROSS JOIN LATERAL (
    SELECT id, job, scheduled_at, shard, trigger_key, origin, state, reason, attempt, crashes, fence,
        claim_id, owner, exclusive, delivery, due_at, expires_at, lease_until, cancel_requested,
        created_at, started_at, finished_at, error, output
    FROM runner_firings
    WHERE namespace = known.namespace AND job = known.name
      AND ($3 IS NULL OR state = $3)
      AND scheduled_at >= coalesce($4, '-infinity'::timestamptz)
      AND scheduled_at <= coalesce($5, 'infinity'::timestamptz)
    ORDER BY scheduled_at DESC, id DESC
    LIMIT $6
) AS firing
WHERE known.namespace = $1 AND ($2 IS NULL OR known.name = $2)
ORDER BY firing.scheduled_at DESC, firing.id DESC
LIMIT $6
