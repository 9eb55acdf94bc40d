-- requeue_recorded: as settle_recorded; the attempt stays written when another replica has gone on
-- ?1 namespace, ?2 id, ?3 fence, ?4 reason
SELECT 1
FROM runner_firings AS f
LEFT JOIN runner_attempts AS a ON a.firing_id = f.id AND a.fence = ?3 AND a.reason = ?4
WHERE f.namespace = ?1 AND f.id = ?2
  AND (a.fence IS NOT NULL OR (f.fence = ?3 AND f.state = 'cancelled' AND f.cancel_requested = 1));
