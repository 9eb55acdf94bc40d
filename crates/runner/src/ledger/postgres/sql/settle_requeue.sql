-- settle_requeue
-- $1 namespace  $2 id  $3 fence  $4 reason  $5 error  $6 output  $7 crashed  $8 due_in (ms)  $9 expires_in (ms)
-- A wish to cancel that came after the owner's last heartbeat must not be lost with the requeue.
WITH ended AS (
    UPDATE runner_firings SET
        state = CASE WHEN cancel_requested THEN 'cancelled' ELSE 'queued' END,
        reason = CASE WHEN cancel_requested THEN NULL ELSE $4 END,
        finished_at = CASE WHEN cancel_requested THEN greatest(started_at, clock_timestamp()) END,
        due_at = CASE WHEN NOT cancel_requested THEN clock_timestamp() + $8 * interval '1 millisecond' END,
        expires_at = CASE WHEN NOT cancel_requested THEN clock_timestamp() + $9 * interval '1 millisecond' END,
        error = $5, output = $6, crashes = crashes + $7::int, lease_until = NULL
    WHERE id = $2 AND namespace = $1 AND fence = $3 AND state = 'running'
    RETURNING id, state, attempt, fence, owner, started_at, reason, error, output
), superseded AS (
    INSERT INTO runner_attempts (firing_id, attempt, fence, owner, started_at, ended_at, reason, error, output)
    SELECT id, attempt, fence, owner, started_at, greatest(started_at, clock_timestamp()), reason, error, output
    FROM ended WHERE state = 'queued'
)
SELECT id FROM ended
