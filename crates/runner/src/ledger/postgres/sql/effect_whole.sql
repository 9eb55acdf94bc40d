-- effect_whole
-- $1 mark
-- After a settle that found nothing: whether this is still the transaction that was begun.
SELECT coalesce(current_setting('runner.effect', true) = $1, false) AS whole
