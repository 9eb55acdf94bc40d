-- prune: rows that ended long ago, and with them their attempts
-- ?1 namespace, ?2 cutoff, ?3 limit
DELETE FROM runner_firings
WHERE id IN (
    SELECT f.id
    FROM runner_jobs AS j
    CROSS JOIN runner_firings AS f  -- keeps this order: job by job, only the old part of the index
        ON f.namespace = j.namespace AND f.job = j.name AND f.scheduled_at < j.pruned_before
    WHERE j.namespace = ?1
      AND f.finished_at <= ?2  -- NULL until it has ended
    LIMIT ?3
);
