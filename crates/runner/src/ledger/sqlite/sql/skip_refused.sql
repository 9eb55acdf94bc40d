-- skip_refused: why no row was written
-- ?1 namespace, ?2 job, ?3 scheduled_at, ?4 shard, ?5 trigger_key
SELECT f.id, f.scheduled_at, f.state, f.reason, f.owner,
       j.name IS NOT NULL AND ?3 >= coalesce(j.pruned_before, ?3) AS taken
FROM (SELECT 1)
LEFT JOIN runner_jobs AS j ON j.namespace = ?1 AND j.name = ?2
LEFT JOIN runner_firings AS f
    ON f.namespace = ?1 AND f.job = ?2 AND f.scheduled_at = ?3 AND f.shard = ?4 AND f.trigger_key = ?5;
