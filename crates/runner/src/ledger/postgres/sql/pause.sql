-- pause
-- $1 namespace  $2 name  $3 by  $4 note
-- Waits for the claims that hold the job's row; later ones see the pause. So once it returns, none is in flight.
UPDATE runner_jobs SET paused_at = coalesce(paused_at, clock_timestamp()), paused_by = $3, paused_note = $4
WHERE namespace = $1 AND name = $2
RETURNING name
