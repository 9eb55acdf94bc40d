-- running
-- $1 namespace
SELECT id, fence, job, scheduled_at, owner, delivery, lease_until,
    greatest(extract(epoch FROM lease_until - clock_timestamp()), 0)::float8 AS remaining
FROM runner_firings
WHERE namespace = $1 AND state = 'running'
ORDER BY lease_until
