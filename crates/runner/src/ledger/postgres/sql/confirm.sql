-- confirm
-- $1 namespace  $2 job  $3 scheduled_at  $4 shard  $5 trigger_key  $6 claim_id
-- Only the id that this very try made proves that the row is its own, and only while it runs:
-- a row that was swept back into the queue is nobody's.
SELECT id, fence, attempt, crashes, started_at,
    (SELECT count(*)::integer FROM runner_attempts
     WHERE firing_id = runner_firings.id AND runner_attempts.reason = 'retry') AS failures
FROM runner_firings
WHERE namespace = $1 AND job = $2 AND scheduled_at = $3 AND shard = $4 AND trigger_key = $5
  AND claim_id = $6 AND state = 'running'
