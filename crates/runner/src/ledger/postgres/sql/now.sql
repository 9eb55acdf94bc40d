-- now
-- A server that only reads tells the time as well as any other; claims are another matter. One that still
-- replays another's log writes no timeline yet.
SELECT clock_timestamp() AS now, current_setting('transaction_read_only')::bool AS only_reads,
    runner_system() AS system, CASE WHEN NOT pg_is_in_recovery() THEN runner_timeline() END AS timeline
