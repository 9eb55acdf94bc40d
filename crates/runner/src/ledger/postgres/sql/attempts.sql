-- attempts
-- $1 namespace  $2 id
SELECT past.attempt, past.fence, past.owner, past.started_at, past.ended_at, past.reason, past.error, past.output
FROM runner_attempts AS past
JOIN runner_firings AS firing ON firing.id = past.firing_id
WHERE past.firing_id = $2 AND firing.namespace = $1
ORDER BY past.attempt
