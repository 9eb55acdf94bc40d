-- cancel
-- $1 namespace  $2 id
-- A queued row ends here. A running one keeps its owner, who learns of the wish at the next heartbeat.
UPDATE runner_firings SET
    cancel_requested = true,
    state = CASE state WHEN 'queued' THEN 'cancelled' ELSE state END,
    reason = CASE state WHEN 'queued' THEN NULL ELSE reason END,
    finished_at = CASE state WHEN 'queued' THEN clock_timestamp() END
WHERE id = $2 AND namespace = $1 AND state IN ('queued', 'running')
RETURNING id
