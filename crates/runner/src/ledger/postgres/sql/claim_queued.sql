-- claim_queued
-- $1 namespace  $2 job  $3 id  $4 claim_id  $5 owner  $6 exclusive  $7 delivery  $8 lease (ms)
-- The same gate as for a fresh claim, but for the watermark: this row exists, so nothing that
-- retention removed can come back through it.
WITH job AS MATERIALIZED (
    SELECT FROM runner_jobs
    WHERE namespace = $1 AND name = $2 AND paused_at IS NULL
    FOR NO KEY UPDATE
), moment AS MATERIALIZED (
    SELECT clock_timestamp() AS now FROM job
)
UPDATE runner_firings SET
    state = 'running', reason = NULL, attempt = attempt + 1,
    fence = runner_timeline() * 1000000000000 + nextval('runner_fence'),
    claim_id = $4, owner = $5, exclusive = $6, delivery = $7,
    lease_until = now + $8 * interval '1 millisecond', started_at = now,
    due_at = NULL, expires_at = NULL, error = NULL, output = NULL
FROM moment
WHERE id = $3 AND namespace = $1 AND job = $2 AND state = 'queued' AND due_at <= now
RETURNING id, fence, attempt, crashes, started_at,
    (SELECT count(*)::integer FROM runner_attempts
     WHERE firing_id = runner_firings.id AND runner_attempts.reason = 'retry') AS failures
