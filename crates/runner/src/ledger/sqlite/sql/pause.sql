-- pause: a job that is paused already stays paused since then
-- ?1 namespace, ?2 name, ?3 by, ?4 note
UPDATE runner_jobs
SET paused_at = coalesce(paused_at, CAST(round(unixepoch('subsec') * 1000) AS INTEGER)), paused_by = ?3, paused_note = ?4
WHERE namespace = ?1 AND name = ?2;
