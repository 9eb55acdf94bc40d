-- skip: a firing that did not run, and why
-- ?1 namespace, ?2 job, ?3 scheduled_at, ?4 shard, ?5 trigger_key, ?6 origin, ?7 reason, ?8 detail,
-- ?9 only while an exclusive run is running
WITH clock (now) AS (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER))
INSERT INTO runner_firings (
    namespace, job, scheduled_at, shard, trigger_key, origin, state, reason, error,
    exclusive, delivery, created_at, finished_at
)
SELECT j.namespace, j.name, ?3, ?4, ?5, ?6, 'skipped', ?7, ?8, 0, 'at_least_once', now, now
FROM clock, runner_jobs AS j
WHERE j.namespace = ?1 AND j.name = ?2
  AND ?3 >= coalesce(j.pruned_before, ?3)
  AND (
      ?9 = 0
      OR EXISTS (
          SELECT 1
          FROM runner_firings AS b
          WHERE b.namespace = ?1 AND b.job = ?2 AND b.shard = ?4 AND b.state = 'running' AND b.exclusive = 1
      )
  )
ON CONFLICT DO NOTHING;
