-- claim_queued: the same gate, but the row is there and waits, so that pruning has no say
-- OR IGNORE: a running row of the job is an overlap, not an error; this row stays queued.
-- ?1 namespace, ?2 job, ?3 id, ?4 fence, ?5 claim_id, ?6 owner, ?7 exclusive, ?8 delivery, ?9 lease
WITH clock (now) AS (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER))
UPDATE OR IGNORE runner_firings
SET state = 'running', reason = NULL, attempt = attempt + 1, fence = ?4, claim_id = ?5, owner = ?6,
    exclusive = ?7, delivery = ?8, due_at = NULL, expires_at = NULL, lease_until = now + ?9,
    started_at = now, finished_at = NULL, error = NULL, output = NULL
FROM clock, runner_jobs AS j
WHERE j.namespace = ?1 AND j.name = ?2
  AND j.paused_at IS NULL
  AND runner_firings.id = ?3
  AND runner_firings.namespace = j.namespace
  AND runner_firings.job = j.name
  AND runner_firings.state = 'queued'
  AND runner_firings.due_at <= now
RETURNING id, fence, attempt, crashes, started_at,
    (SELECT count(*) FROM runner_attempts
     WHERE firing_id = runner_firings.id AND runner_attempts.reason = 'retry') AS failures;
