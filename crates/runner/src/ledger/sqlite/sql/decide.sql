-- decide: moves the horizon, unless another replica has moved it. A job that was registered while the clock was ahead
-- would hold it there
-- ?1 namespace, ?2 job, ?3 decided until, as it was read, ?4 decided until, from now on
UPDATE runner_jobs
SET reconciled_until = ?4,
    known_since = min(known_since, CAST(round(unixepoch('subsec') * 1000) AS INTEGER))
WHERE namespace = ?1 AND name = ?2
  AND max(known_since, coalesce(reconciled_until, known_since)) = ?3;
