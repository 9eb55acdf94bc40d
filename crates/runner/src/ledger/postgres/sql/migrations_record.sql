-- migrations_record
-- $1 version  $2 description  $3 checksum
INSERT INTO runner_migrations (version, description, success, checksum, execution_time)
VALUES ($1, $2, true, $3, -1)
