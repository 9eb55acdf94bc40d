-- effect_settle
-- $1 namespace  $2 id  $3 fence  $4 mark  $5 output
-- The last statement of the transaction. Without the mark it is another transaction, or none: then the
-- work has been committed or undone by a statement of its own, and the firing must not follow it.
UPDATE runner_firings SET
    state = 'succeeded', reason = NULL, error = NULL, output = $5,
    finished_at = greatest(started_at, clock_timestamp()), lease_until = NULL
WHERE id = $2 AND namespace = $1 AND fence = $3 AND state = 'running'
    AND current_setting('runner.effect', true) = $4
RETURNING id
