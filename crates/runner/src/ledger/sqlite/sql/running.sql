-- running: every run, for the sweep to watch
-- ?1 namespace
WITH clock (now) AS (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER))
SELECT id, fence, job, scheduled_at, owner, delivery, lease_until, max(lease_until - now, 0) AS remaining
FROM clock, runner_firings
WHERE namespace = ?1 AND state = 'running'
ORDER BY lease_until, id;
