-- attempts: superseded attempts of a firing, oldest first
-- ?1 namespace, ?2 id of the firing
SELECT a.attempt, a.fence, a.owner, a.started_at, a.ended_at, a.reason, a.error, a.output
FROM runner_attempts AS a
JOIN runner_firings AS f ON f.id = a.firing_id
WHERE f.namespace = ?1 AND a.firing_id = ?2
ORDER BY a.attempt;
