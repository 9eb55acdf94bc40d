-- sweep_look: a run that is still as the sweeper saw it, and over
-- ?1 namespace, ?2 id, ?3 fence, ?4 lease_until as seen
SELECT job, delivery, crashes, cancel_requested
FROM runner_firings
WHERE namespace = ?1 AND id = ?2 AND fence = ?3 AND state = 'running' AND lease_until = ?4
  AND lease_until <= CAST(round(unixepoch('subsec') * 1000) AS INTEGER);
