-- expire
-- $1 namespace  $2 limit
-- Of any job, also of one that no file declares any more: a row must not wait in silence.
UPDATE runner_firings SET
    state = CASE attempt WHEN 0 THEN 'skipped' ELSE 'failed' END,
    reason = CASE attempt WHEN 0 THEN 'missed' ELSE 'expired' END,
    finished_at = clock_timestamp()
WHERE id IN (
    SELECT id FROM runner_firings
    WHERE namespace = $1 AND state = 'queued' AND expires_at <= clock_timestamp()
    ORDER BY expires_at
    LIMIT $2
    FOR UPDATE SKIP LOCKED)
RETURNING id, job, state, reason
