-- refusal
-- $1 namespace  $2 job  $3 scheduled_at  $4 shard  $5 trigger_key
-- Everything that can stand in the way of a row, in one look; always one row.
SELECT clock_timestamp() AS now,
    job.name IS NOT NULL AS registered,
    job.paused_at IS NOT NULL AS paused,
    coalesce(job.pruned_before > $3, false) AS pruned,
    EXISTS (SELECT FROM runner_firings WHERE namespace = $1 AND job = $2 AND shard = $4
        AND state = 'queued' AND reason = 'overlap') AS one_waits,
    mine.id, mine.scheduled_at, mine.state, mine.reason, mine.owner,
    mine.fence, mine.attempt, mine.crashes, mine.started_at, mine.claim_id, mine.due_at,
    (SELECT count(*)::integer FROM runner_attempts
     WHERE firing_id = mine.id AND runner_attempts.reason = 'retry') AS failures,
    other.id AS other_id, other.scheduled_at AS other_scheduled_at, other.state AS other_state,
    other.reason AS other_reason, other.owner AS other_owner
FROM (SELECT) AS look
LEFT JOIN runner_jobs AS job ON job.namespace = $1 AND job.name = $2
LEFT JOIN runner_firings AS mine ON mine.namespace = $1 AND mine.job = $2 AND mine.scheduled_at = $3
    AND mine.shard = $4 AND mine.trigger_key = $5
LEFT JOIN runner_firings AS other ON other.namespace = $1 AND other.job = $2 AND other.shard = $4
    AND other.state = 'running' AND other.exclusive
