-- register: a changed schedule is known from now on, so that nothing is invented for its past
-- ?1 namespace, ?2 name, ?3 spec_hash
INSERT INTO runner_jobs (namespace, name, known_since, spec_hash)
VALUES (?1, ?2, CAST(round(unixepoch('subsec') * 1000) AS INTEGER), ?3)
ON CONFLICT (namespace, name) DO UPDATE
SET known_since = excluded.known_since, spec_hash = excluded.spec_hash
WHERE runner_jobs.spec_hash <> excluded.spec_hash;
