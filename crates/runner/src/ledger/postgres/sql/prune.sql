-- prune
-- $1 namespace  $2 name  $3 retention (ms)  $4 batch
-- The watermark rises under the job's row lock and commits together with the removal: a claim of a
-- removed instant either came before and met the row, or comes after and meets the watermark.
WITH job AS MATERIALIZED (
    SELECT namespace, name, pruned_before FROM runner_jobs
    WHERE namespace = $1 AND name = $2
    FOR NO KEY UPDATE
), cut AS MATERIALIZED (
    SELECT clock_timestamp() - $3 * interval '1 millisecond' AS before FROM job
), raised AS (
    UPDATE runner_jobs AS target SET pruned_before = greatest(target.pruned_before, before)
    FROM cut
    WHERE target.namespace = $1 AND target.name = $2
), removed AS (
    DELETE FROM runner_firings
    WHERE id IN (
        SELECT id FROM runner_firings
        WHERE namespace = $1 AND job = $2
          AND scheduled_at < (SELECT before FROM cut)
          AND finished_at < (SELECT before FROM cut)
        ORDER BY scheduled_at
        LIMIT $4)
    RETURNING id
)
SELECT count(*) AS removed FROM removed
