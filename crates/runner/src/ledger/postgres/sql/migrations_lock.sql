-- migrations_lock
-- Until the transaction ends, and no longer: a lock of the session would outlive us behind a pooler.
SELECT pg_advisory_xact_lock(hashtextextended('runner_migrations', 0))
