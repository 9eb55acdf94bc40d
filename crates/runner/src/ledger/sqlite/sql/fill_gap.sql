-- fill_gap: a row for a firing that nobody wrote one for
-- ?1 namespace, ?2 job, ?3 scheduled_at, ?4 shard, ?5 run, ?6 exclusive, ?7 delivery, ?8 expires_in, ?9 detail
WITH gap AS (
    SELECT CAST(round(unixepoch('subsec') * 1000) AS INTEGER) AS now,
           j.paused_at IS NOT NULL AS paused,
           ?5 AND j.paused_at IS NULL AS queued
    FROM runner_jobs AS j
    WHERE j.namespace = ?1 AND j.name = ?2 AND ?3 >= coalesce(j.pruned_before, ?3)
)
INSERT INTO runner_firings (
    namespace, job, scheduled_at, shard, trigger_key, origin, state, reason,
    exclusive, delivery, due_at, expires_at, created_at, finished_at, error
)
SELECT ?1, ?2, ?3, ?4, '', 'catch_up',
       iif(queued, 'queued', 'skipped'),
       iif(queued, 'catch_up', iif(paused, 'paused', 'missed')),
       queued AND ?6, ?7,
       iif(queued, now, NULL), iif(queued, now + ?8, NULL),
       now, iif(queued, NULL, now), ?9
FROM gap
WHERE true
ON CONFLICT DO NOTHING;
