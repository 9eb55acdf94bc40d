-- prune_watermark: a removed firing must not become claimable again
-- Only for jobs that lose something, so that a young ledger can still be backfilled.
-- ?1 namespace, ?2 cutoff
UPDATE runner_jobs
SET pruned_before = max(coalesce(pruned_before, ?2), ?2)
WHERE namespace = ?1
  AND EXISTS (
      SELECT 1
      FROM runner_firings AS f
      WHERE f.namespace = ?1 AND f.job = runner_jobs.name AND f.scheduled_at < ?2
        AND f.finished_at <= ?2
  );
