-- prune_jobs
-- $1 namespace  $2 retention (ms)
-- The jobs that have something to remove.
SELECT name FROM runner_jobs AS job
WHERE namespace = $1 AND EXISTS (
    SELECT FROM runner_firings AS firing
    WHERE firing.namespace = job.namespace AND firing.job = job.name
      AND firing.scheduled_at < (SELECT clock_timestamp() - $2 * interval '1 millisecond')
      AND firing.finished_at < (SELECT clock_timestamp() - $2 * interval '1 millisecond'))
ORDER BY name
