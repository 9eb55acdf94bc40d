-- migrations_applied
SELECT version, checksum FROM runner_migrations ORDER BY version
