-- heartbeat: no time predicate, since reviving an expired lease that nobody took is safe
-- ?1 namespace, ?2 id, ?3 fence, ?4 lease
UPDATE runner_firings
SET lease_until = CAST(round(unixepoch('subsec') * 1000) AS INTEGER) + ?4
WHERE namespace = ?1 AND id = ?2 AND fence = ?3 AND state = 'running'
RETURNING cancel_requested;
