-- horizons: how far gaps are decided, and the firings of the schedule that have rows since
-- ?1 namespace, ?2 [[job, reach_back], ...]
WITH asked AS (
    SELECT j.name, max(j.known_since, coalesce(j.reconciled_until, j.known_since)) AS decided_until,
           question.value ->> 1 AS back
    FROM json_each(?2) AS question
    JOIN runner_jobs AS j ON j.namespace = ?1 AND j.name = question.value ->> 0
)
SELECT asked.name, asked.decided_until, f.scheduled_at, f.shard
FROM asked
LEFT JOIN runner_firings AS f
    ON f.namespace = ?1 AND f.job = asked.name AND f.trigger_key = ''
   AND f.scheduled_at > asked.decided_until - asked.back
ORDER BY asked.name, f.scheduled_at;
