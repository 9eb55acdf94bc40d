-- history: rows, newest first
-- ?1 namespace, ?2 job, ?3 state, ?4 from, ?5 until, ?6 limit, or -1
SELECT id, job, scheduled_at, shard, trigger_key, origin, state, reason, attempt, crashes, fence, claim_id, owner,
       exclusive, delivery, due_at, expires_at, lease_until, cancel_requested, created_at, started_at,
       finished_at, error, output
FROM runner_firings
WHERE namespace = ?1
  AND (?2 IS NULL OR job = ?2)
  AND (?3 IS NULL OR state = ?3)
  AND (?4 IS NULL OR scheduled_at >= ?4)
  AND (?5 IS NULL OR scheduled_at <= ?5)
ORDER BY scheduled_at DESC, id DESC
LIMIT ?6;
