-- effect_begin
-- $1 namespace  $2 id  $3 fence  $4 what is left of the timeout (ms)  $5 lock_timeout (ms)  $6 idle (ms)
-- An early refusal, and the guards for the case that we vanish. The row is only read: a lock on it
-- would keep out the run's own heartbeats. The mark says whose transaction this is, to our last
-- statement (it goes with the transaction) and to the next attempt. Older servers lack some settings,
-- and only on Linux is it certain that a server can watch its client while it works.
SELECT
    current_setting('search_path') AS search_path,
    set_config('runner.effect', mark, true) AS mark,
    set_config('application_name', mark, true) AS named,
    (SELECT count(set_config(name, value, true))
     FROM (VALUES ('statement_timeout', $4), ('transaction_timeout', $4), ('lock_timeout', $5),
                  ('idle_in_transaction_session_timeout', $6),
                  (CASE WHEN version() LIKE '%linux%' THEN 'client_connection_check_interval' END, '1000')
          ) AS guard (name, value)
     WHERE current_setting(name, true) IS NOT NULL) AS guards,
    EXISTS (SELECT FROM runner_firings
            WHERE id = $2 AND namespace = $1 AND fence = $3 AND state = 'running') AS ours
FROM (SELECT format('runner effect %s/%s/%s', 'runner_firings'::regclass::oid, $2, $3) AS mark) AS made
