-- due
-- $1 namespace  $2 jobs  $3 limit
-- Rows that no claim could take now are left out: they would fill the list and starve the others.
SELECT id, job, scheduled_at, shard, trigger_key, origin, attempt, reason
FROM runner_firings AS waiting
WHERE namespace = $1 AND job = ANY ($2) AND state = 'queued'
  AND due_at <= (SELECT clock_timestamp())
  AND expires_at > (SELECT clock_timestamp())
  AND NOT EXISTS (
      SELECT FROM runner_jobs AS job
      WHERE job.namespace = waiting.namespace AND job.name = waiting.job AND job.paused_at IS NOT NULL)
  AND NOT (exclusive AND EXISTS (
      SELECT FROM runner_firings AS other
      WHERE other.namespace = waiting.namespace AND other.job = waiting.job AND other.shard = waiting.shard
        AND other.state = 'running' AND other.exclusive))
ORDER BY due_at, id
LIMIT $3
