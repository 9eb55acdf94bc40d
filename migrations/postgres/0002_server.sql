-- Fences that go on growing when another server takes over.
-- A standby that is promoted may lack the last values of the sequence, and would mint them again. So a
-- fence is timeline * 10^12 + sequence: PostgreSQL counts its timelines up with every promotion. Fences
-- from before are smaller than any timeline's, and a sequence that passes 10^12 carries.

ALTER SEQUENCE runner_fence NO MAXVALUE;

-- The timeline that this server writes. It is asked from the log's present position, in whose file name
-- it stands in hex: what the control file says is right only after the checkpoint that follows a promotion.
-- And the identity of the cluster: the same for a primary and its standbys, new with every initdb.
-- A server that has no such log to show (some managed ones keep several copies beneath one server, and
-- lose no commit by changing it) counts as one that is never replaced.
DO $$
BEGIN
    CREATE FUNCTION runner_timeline() RETURNS bigint LANGUAGE sql VOLATILE
    AS $body$ SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint $body$;
    CREATE FUNCTION runner_system() RETURNS bigint LANGUAGE sql VOLATILE
    AS $body$ SELECT system_identifier FROM pg_control_system() $body$;
    PERFORM runner_timeline(), runner_system();
EXCEPTION WHEN feature_not_supported OR object_not_in_prerequisite_state OR insufficient_privilege
    OR undefined_function THEN
    CREATE FUNCTION runner_timeline() RETURNS bigint LANGUAGE sql VOLATILE AS $body$ SELECT 1::bigint $body$;
    CREATE FUNCTION runner_system() RETURNS bigint LANGUAGE sql VOLATILE AS $body$ SELECT 0::bigint $body$;
END $$;

-- The server that the replicas saw last. A ledger that was moved to another cluster meets timelines that
-- begin with 1 again, and has to know how far the old ones had come.
CREATE TABLE runner_server (
    only_row integer NOT NULL,
    system   bigint  NOT NULL,
    timeline bigint  NOT NULL,
    CONSTRAINT runner_server_pkey PRIMARY KEY (only_row),
    CONSTRAINT runner_server_one CHECK (only_row = 1)
);

INSERT INTO runner_server (only_row, system, timeline) VALUES (1, runner_system(), runner_timeline());
