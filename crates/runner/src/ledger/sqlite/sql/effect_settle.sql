-- effect_settle: the last statement of the transaction; a run that was taken over ends it with nothing
-- ?1 namespace, ?2 id, ?3 fence, ?4 output
UPDATE runner_firings
SET state = 'succeeded', reason = NULL, error = NULL, output = ?4, lease_until = NULL,
    finished_at = max(started_at, CAST(round(unixepoch('subsec') * 1000) AS INTEGER))
WHERE namespace = ?1 AND id = ?2 AND fence = ?3 AND state = 'running';
