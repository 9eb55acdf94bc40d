-- counts: rows per job and state
-- ?1 namespace
SELECT job, state, count(*) AS rows
FROM runner_firings
WHERE namespace = ?1
GROUP BY job, state
ORDER BY job, state;
