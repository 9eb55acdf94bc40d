-- claim: the row that makes a firing ours
-- ?1 namespace, ?2 job, ?3 scheduled_at, ?4 shard, ?5 trigger_key, ?6 origin, ?7 fence, ?8 claim_id,
-- ?9 owner, ?10 exclusive, ?11 delivery, ?12 lease, ?13 not_after, ?14 clock skew allowed
WITH clock (now) AS (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER))
INSERT INTO runner_firings (
    namespace, job, scheduled_at, shard, trigger_key, origin, state, attempt,
    fence, claim_id, owner, exclusive, delivery, lease_until, created_at, started_at
)
SELECT j.namespace, j.name, ?3, ?4, ?5, ?6, 'running', 1, ?7, ?8, ?9, ?10, ?11, now + ?12, now, now
FROM clock, runner_jobs AS j
WHERE j.namespace = ?1 AND j.name = ?2
  AND j.paused_at IS NULL
  AND ?3 >= coalesce(j.pruned_before, ?3)  -- a row that retention removed must not be claimed again
  AND ?3 <= now + ?14                      -- a replica's fast clock must not run it early
  AND now <= ?3 + ?13
ON CONFLICT DO NOTHING
RETURNING id, fence, attempt, crashes, 0 AS failures, started_at;
