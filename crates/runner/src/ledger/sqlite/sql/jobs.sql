-- jobs: what this namespace has seen
-- ?1 namespace
SELECT name, known_since, reconciled_until, spec_hash, paused_at, paused_by, paused_note, pruned_before
FROM runner_jobs
WHERE namespace = ?1
ORDER BY name;
