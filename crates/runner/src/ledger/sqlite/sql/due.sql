-- due: queued firings that could be claimed now, oldest first
-- Those that could not (paused, expired, behind a run of their job) are left out, or they would fill
-- the limit and starve the rest.
-- ?1 namespace, ?2 jobs as a JSON array, ?3 limit
WITH clock (now) AS (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER))
SELECT q.id, q.job, q.scheduled_at, q.shard, q.trigger_key, q.origin, q.attempt, q.reason
FROM clock, runner_firings AS q
JOIN runner_jobs AS j ON j.namespace = q.namespace AND j.name = q.job
WHERE q.namespace = ?1 AND q.state = 'queued'
  AND q.due_at <= now AND now < q.expires_at
  AND q.job IN (SELECT value FROM json_each(?2))
  AND j.paused_at IS NULL
  AND (
      q.exclusive = 0
      OR NOT EXISTS (
          SELECT 1
          FROM runner_firings AS b
          WHERE b.namespace = q.namespace AND b.job = q.job AND b.shard = q.shard
            AND b.state = 'running' AND b.exclusive = 1
      )
  )
ORDER BY q.due_at, q.scheduled_at, q.id
LIMIT ?3;
