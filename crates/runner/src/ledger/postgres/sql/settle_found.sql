-- settle_found
-- $1 namespace  $2 id  $3 fence  $4 state  $5 reason
-- After a settle that changed nothing: whether an earlier try of the same settle did. A requeued
-- firing may have been claimed since; then its history says so. A requeue that cancelled leaves no
-- history; a run that was swept first, and cancelled in the queue, does: its owner came too late.
SELECT EXISTS (
    SELECT FROM runner_firings
    WHERE id = $2 AND namespace = $1 AND fence = $3
      AND (state = $4 AND reason IS NOT DISTINCT FROM $5
           OR $4 = 'queued' AND state = 'cancelled' AND cancel_requested
              AND NOT EXISTS (SELECT FROM runner_attempts WHERE firing_id = $2 AND fence = $3))
) OR $4 = 'queued' AND EXISTS (
    SELECT FROM runner_attempts
    JOIN runner_firings AS firing ON firing.id = firing_id
    WHERE firing_id = $2 AND firing.namespace = $1 AND runner_attempts.fence = $3
      AND runner_attempts.reason = $5
) AS recorded
