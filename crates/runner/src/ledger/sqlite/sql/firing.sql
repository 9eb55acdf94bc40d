-- firing: one row
-- ?1 namespace, ?2 id
SELECT id, job, scheduled_at, shard, trigger_key, origin, state, reason, attempt, crashes, fence, claim_id, owner,
       exclusive, delivery, due_at, expires_at, lease_until, cancel_requested, created_at, started_at,
       finished_at, error, output
FROM runner_firings
WHERE namespace = ?1 AND id = ?2;
