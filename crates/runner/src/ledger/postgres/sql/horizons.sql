-- horizons
-- $1 namespace  $2 names  $3 reach back (ms)
-- One row for each firing of the schedule that is there, or one without a firing.
WITH asked AS MATERIALIZED (
    SELECT job.name, greatest(job.known_since, job.reconciled_until) AS decided_until, question.back
    FROM unnest($2::text[], $3::bigint[]) AS question (name, back)
    JOIN runner_jobs AS job ON job.namespace = $1 AND job.name = question.name
)
SELECT asked.name, asked.decided_until, firing.scheduled_at, firing.shard
FROM asked
LEFT JOIN runner_firings AS firing
    ON firing.namespace = $1 AND firing.job = asked.name AND firing.trigger_key = ''
   AND firing.scheduled_at > asked.decided_until - asked.back * interval '1 millisecond'
ORDER BY asked.name, firing.scheduled_at
