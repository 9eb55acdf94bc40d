-- requeue_recorded: as settle_recorded; the attempt stays written when another replica has gone on
-- A requeue that cancelled leaves no attempt behind; a run that was swept first, and cancelled in the
-- queue, does: its owner came too late.
-- ?1 namespace, ?2 id, ?3 fence, ?4 reason
SELECT 1
FROM runner_firings AS f
LEFT JOIN runner_attempts AS a ON a.firing_id = f.id AND a.fence = ?3
WHERE f.namespace = ?1 AND f.id = ?2
  AND (a.reason = ?4
       OR (a.fence IS NULL AND f.fence = ?3 AND f.state = 'cancelled' AND f.cancel_requested = 1));
