-- effect_ours: an early refusal, under the file's write lock; so what it says holds until the commit
-- ?1 namespace, ?2 id, ?3 fence
SELECT 1
FROM runner_firings
WHERE namespace = ?1 AND id = ?2 AND fence = ?3 AND state = 'running';
