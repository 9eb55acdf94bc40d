-- cancel: a queued firing ends, the owner of a running one is asked to stop
-- ?1 namespace, ?2 id
UPDATE runner_firings
SET cancel_requested = 1,
    reason = CASE state WHEN 'running' THEN reason END,
    finished_at = CASE state WHEN 'queued' THEN CAST(round(unixepoch('subsec') * 1000) AS INTEGER) END,
    state = CASE state WHEN 'queued' THEN 'cancelled' ELSE state END
WHERE namespace = ?1 AND id = ?2 AND state IN ('queued', 'running');
