-- effect_committed: asked under the write lock, so that no commit is under way any more
-- ?1 namespace, ?2 id, ?3 fence
SELECT 1
FROM runner_firings
WHERE namespace = ?1 AND id = ?2 AND fence = ?3 AND state = 'succeeded';
