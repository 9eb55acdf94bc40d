-- effect_cleanse
-- What a job left in its session is nothing for the next one: all of DISCARD ALL, but for the statements
-- that the client remembers, and their plans.
CLOSE ALL; SET SESSION AUTHORIZATION DEFAULT; RESET ALL; UNLISTEN *;
SELECT pg_advisory_unlock_all(); DISCARD TEMP; DISCARD SEQUENCES
