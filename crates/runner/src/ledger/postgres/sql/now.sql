-- now
SELECT clock_timestamp() AS now
