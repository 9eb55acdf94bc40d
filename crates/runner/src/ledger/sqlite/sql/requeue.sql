-- requeue: the run is over, the firing is not; follows supersede in its transaction
-- ?1 namespace, ?2 id, ?3 fence, ?4 reason, ?5 crashes to add, ?6 error, ?7 output, ?8 due_in,
-- ?9 expires_in
WITH clock (now) AS (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER))
UPDATE runner_firings
SET state = 'queued', reason = ?4, crashes = crashes + ?5, error = ?6, output = ?7,
    lease_until = NULL, due_at = now + ?8, expires_at = now + ?9
FROM clock
WHERE namespace = ?1 AND id = ?2 AND fence = ?3 AND state = 'running';
