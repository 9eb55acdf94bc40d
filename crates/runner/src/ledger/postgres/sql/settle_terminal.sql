-- settle_terminal
-- $1 namespace  $2 id  $3 fence  $4 state  $5 reason  $6 error  $7 output  $8 crashed
-- The fence keeps out everyone but the newest owner. No condition on the time: a result counts as
-- long as nobody took over. A row given up as lost takes the result that its owner brings late, once.
-- This server's clock may have been set back during the run, which has not ended before it began.
UPDATE runner_firings SET
    state = $4, reason = $5, error = $6, output = $7, crashes = crashes + $8::int,
    finished_at = greatest(started_at, clock_timestamp()), lease_until = NULL
WHERE id = $2 AND namespace = $1 AND fence = $3
  AND (state = 'running' OR (state = 'lost' AND $4 IN ('succeeded', 'failed')))
RETURNING id
