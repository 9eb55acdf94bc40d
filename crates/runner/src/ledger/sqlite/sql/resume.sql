-- resume: claims are allowed again
-- ?1 namespace, ?2 name
UPDATE runner_jobs
SET paused_at = NULL, paused_by = NULL, paused_note = NULL
WHERE namespace = ?1 AND name = ?2;
