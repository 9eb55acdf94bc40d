-- decide: raises the horizon, unless another replica has moved it
-- ?1 namespace, ?2 job, ?3 decided until, as it was read, ?4 decided until, from now on
UPDATE runner_jobs
SET reconciled_until = ?4
WHERE namespace = ?1 AND name = ?2
  AND max(known_since, coalesce(reconciled_until, known_since)) = ?3;
