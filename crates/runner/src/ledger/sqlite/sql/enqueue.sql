-- enqueue: a firing that waits for an owner
-- ?1 namespace, ?2 job, ?3 scheduled_at, ?4 shard, ?5 trigger_key, ?6 origin, ?7 reason, ?8 exclusive,
-- ?9 delivery, ?10 due_in, ?11 expires_in
WITH clock (now) AS (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER))
INSERT INTO runner_firings (
    namespace, job, scheduled_at, shard, trigger_key, origin, state, reason,
    exclusive, delivery, due_at, expires_at, created_at
)
SELECT j.namespace, j.name, ?3, ?4, ?5, ?6, 'queued', ?7, ?8, ?9, now + ?10, now + ?11, now
FROM clock, runner_jobs AS j
WHERE j.namespace = ?1 AND j.name = ?2
  AND j.paused_at IS NULL
  AND ?3 >= coalesce(j.pruned_before, ?3)
ON CONFLICT DO NOTHING
RETURNING id;
