-- effect_evict
-- $1 mark, as effect_begin made it
-- Ends what earlier attempts of this firing have left behind: an owner that was frozen in the middle of
-- a long statement holds its locks for as long as the server works on it. None of them can commit any
-- more, since the row is ours.
SELECT count(pg_terminate_backend(pid)) AS ended
FROM pg_stat_activity
WHERE application_name LIKE substring($1 from '.*/') || '%' AND application_name <> $1
    AND datname = current_database() AND usename = session_user
