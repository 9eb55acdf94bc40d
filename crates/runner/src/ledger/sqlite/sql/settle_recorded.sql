-- settle_recorded: whether an earlier try of this settle, whose answer was lost, has taken effect
-- ?1 namespace, ?2 id, ?3 fence, ?4 state, ?5 reason
SELECT 1
FROM runner_firings
WHERE namespace = ?1 AND id = ?2 AND fence = ?3 AND state = ?4 AND reason IS ?5;
