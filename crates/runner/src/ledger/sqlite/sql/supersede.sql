-- supersede: keeps what a run left, before the next one overwrites it
-- A run that someone wants stopped is not superseded: nothing follows it.
-- ?1 namespace, ?2 id, ?3 fence, ?4 reason, ?5 error, ?6 output
INSERT INTO runner_attempts (firing_id, attempt, fence, owner, started_at, ended_at, reason, error, output)
SELECT id, attempt, fence, owner, started_at,
    max(started_at, CAST(round(unixepoch('subsec') * 1000) AS INTEGER)), ?4, ?5, ?6
FROM runner_firings
WHERE namespace = ?1 AND id = ?2 AND fence = ?3 AND state = 'running' AND cancel_requested = 0;
