-- expire: a queued row gives up, whether or not its job is still declared anywhere
-- ?1 namespace, ?2 limit
WITH clock (now) AS (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER))
UPDATE runner_firings
SET state = CASE attempt WHEN 0 THEN 'skipped' ELSE 'failed' END,
    reason = CASE attempt WHEN 0 THEN 'missed' ELSE 'expired' END,
    finished_at = now
FROM clock
WHERE id IN (
    SELECT q.id
    FROM runner_firings AS q
    WHERE q.namespace = ?1 AND q.state = 'queued' AND q.expires_at <= (SELECT now FROM clock)
    ORDER BY q.expires_at
    LIMIT ?2
)
RETURNING id, job, state, reason;
