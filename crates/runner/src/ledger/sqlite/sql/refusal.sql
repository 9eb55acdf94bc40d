-- refusal: all that can stand in the way of a row, in one look
-- ?1 namespace, ?2 job, ?3 scheduled_at, ?4 shard, ?5 trigger_key
WITH clock (now) AS (SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER))
SELECT clock.now,
       j.name IS NOT NULL AS registered,
       j.paused_at IS NOT NULL AS paused,
       coalesce(?3 < j.pruned_before, 0) AS pruned,
       EXISTS (SELECT 1 FROM runner_firings AS w
        WHERE w.namespace = ?1 AND w.job = ?2 AND w.shard = ?4
          AND w.state = 'queued' AND w.reason = 'overlap') AS one_waits,
       f.id, f.scheduled_at, f.state, f.reason, f.owner,
       f.claim_id, f.fence, f.attempt, f.crashes, f.started_at, f.due_at,
       (SELECT count(*) FROM runner_attempts AS a
        WHERE a.firing_id = f.id AND a.reason = 'retry') AS failures,
       b.id AS blocker_id, b.scheduled_at AS blocker_scheduled_at, b.state AS blocker_state,
       b.reason AS blocker_reason, b.owner AS blocker_owner
FROM clock
LEFT JOIN runner_jobs AS j ON j.namespace = ?1 AND j.name = ?2
LEFT JOIN runner_firings AS f
    ON f.namespace = ?1 AND f.job = ?2 AND f.scheduled_at = ?3 AND f.shard = ?4 AND f.trigger_key = ?5
LEFT JOIN runner_firings AS b
    ON b.namespace = ?1 AND b.job = ?2 AND b.shard = ?4 AND b.state = 'running' AND b.exclusive = 1;
