-- effect_committed
-- $1 namespace  $2 id  $3 fence
-- Until its commit is through or undone, the transaction that settled holds the row's lock, so this waits
-- for it: what it says is final.
SELECT state = 'succeeded' AS committed
FROM runner_firings
WHERE id = $2 AND namespace = $1 AND fence = $3
FOR SHARE
