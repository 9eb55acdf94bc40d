-- settle: no time predicate, since a result counts as long as nobody took over; a lost run may still
-- report how it ended, once; the host's clock may have been set back during the run, which has not
-- ended before it began
-- ?1 namespace, ?2 id, ?3 fence, ?4 state, ?5 reason, ?6 crashes to add, ?7 error, ?8 output
UPDATE runner_firings
SET state = ?4, reason = ?5, crashes = crashes + ?6, error = ?7, output = ?8, lease_until = NULL,
    finished_at = max(started_at, CAST(round(unixepoch('subsec') * 1000) AS INTEGER))
WHERE namespace = ?1 AND id = ?2 AND fence = ?3
  AND (state = 'running' OR (state = 'lost' AND ?4 IN ('succeeded', 'failed')));
