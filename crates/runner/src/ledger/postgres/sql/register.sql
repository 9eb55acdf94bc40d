-- register
-- $1 namespace  $2 names  $3 spec hashes
-- In the order of the names, so that replicas which start together cannot deadlock. A job whose
-- schedule changed is new from now on: no gap of its former self is invented.
INSERT INTO runner_jobs AS job (namespace, name, known_since, spec_hash)
SELECT $1, name, clock_timestamp(), spec_hash
FROM unnest($2::text[], $3::text[]) AS declared (name, spec_hash)
ORDER BY name
ON CONFLICT (namespace, name) DO UPDATE SET known_since = clock_timestamp(), spec_hash = excluded.spec_hash
WHERE job.spec_hash <> excluded.spec_hash
