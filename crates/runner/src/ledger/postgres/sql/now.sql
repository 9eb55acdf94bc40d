-- now
-- A server that only reads tells the time as well as any other; claims are another matter.
SELECT clock_timestamp() AS now, current_setting('transaction_read_only')::bool AS only_reads
