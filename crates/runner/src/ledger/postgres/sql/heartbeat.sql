-- heartbeat
-- $1 namespace  $2 id  $3 fence  $4 lease (ms)
-- No condition on the time: a lease that is over but was not taken is still ours to revive.
UPDATE runner_firings SET lease_until = clock_timestamp() + $4 * interval '1 millisecond'
WHERE id = $2 AND namespace = $1 AND fence = $3 AND state = 'running'
RETURNING cancel_requested
