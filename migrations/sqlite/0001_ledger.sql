-- The ledger, for one host. The same tables, columns and constraint names as in PostgreSQL.
-- Times are milliseconds since 1970, UTC, by the clock of the host that holds the file.

CREATE TABLE runner_jobs (
    namespace        TEXT    NOT NULL,
    name             TEXT    NOT NULL,
    known_since      INTEGER NOT NULL,
    reconciled_until INTEGER,
    spec_hash        TEXT    NOT NULL,
    paused_at        INTEGER,
    paused_by        TEXT,
    paused_note      TEXT,
    pruned_before    INTEGER,
    CONSTRAINT runner_jobs_pkey PRIMARY KEY (namespace, name)
) STRICT, WITHOUT ROWID;

-- AUTOINCREMENT: a number that once named a row never names another, not even after retention.
CREATE TABLE runner_firings (
    id               INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    namespace        TEXT    NOT NULL,
    job              TEXT    NOT NULL,
    scheduled_at     INTEGER NOT NULL,
    shard            INTEGER NOT NULL,
    trigger_key      TEXT    NOT NULL DEFAULT '',
    origin           TEXT    NOT NULL,
    state            TEXT    NOT NULL,
    reason           TEXT,
    attempt          INTEGER NOT NULL DEFAULT 0,
    crashes          INTEGER NOT NULL DEFAULT 0,
    fence            INTEGER,
    claim_id         TEXT,
    owner            TEXT,
    exclusive        INTEGER NOT NULL,
    delivery         TEXT    NOT NULL,
    due_at           INTEGER,
    expires_at       INTEGER,
    lease_until      INTEGER,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    created_at       INTEGER NOT NULL,
    started_at       INTEGER,
    finished_at      INTEGER,
    error            TEXT,
    output           TEXT,
    CONSTRAINT runner_firings_state CHECK (
        state IN ('queued', 'running', 'succeeded', 'failed', 'lost', 'cancelled', 'skipped')
    ),
    CONSTRAINT runner_firings_queued_waits CHECK (
        state <> 'queued' OR (due_at IS NOT NULL AND expires_at IS NOT NULL)
    ),
    CONSTRAINT runner_firings_running_is_owned CHECK (
        state <> 'running'
        OR (fence IS NOT NULL AND claim_id IS NOT NULL AND owner IS NOT NULL AND lease_until IS NOT NULL)
    )
) STRICT;

-- One row per firing, whatever the lock, the clocks and the replicas do.
CREATE UNIQUE INDEX runner_firings_once
    ON runner_firings (namespace, job, scheduled_at, shard, trigger_key);

-- No overlap, without Redis.
CREATE UNIQUE INDEX runner_firings_running
    ON runner_firings (namespace, job, shard) WHERE state = 'running' AND exclusive = 1;

-- One waits for the overlap to end.
CREATE UNIQUE INDEX runner_firings_waiting
    ON runner_firings (namespace, job, shard) WHERE state = 'queued' AND reason = 'overlap';

CREATE INDEX runner_firings_due ON runner_firings (namespace, due_at) WHERE state = 'queued';

CREATE INDEX runner_firings_lease ON runner_firings (namespace, lease_until) WHERE state = 'running';

-- Attempts that a later one superseded; append-only, gone with their firing.
CREATE TABLE runner_attempts (
    firing_id        INTEGER NOT NULL REFERENCES runner_firings (id) ON DELETE CASCADE,
    attempt          INTEGER NOT NULL,
    fence            INTEGER NOT NULL,
    owner            TEXT    NOT NULL,
    started_at       INTEGER,
    ended_at         INTEGER NOT NULL,
    reason           TEXT    NOT NULL,
    error            TEXT,
    output           TEXT,
    CONSTRAINT runner_attempts_pkey PRIMARY KEY (firing_id, attempt)
) STRICT, WITHOUT ROWID;

-- The fence minted last. A counter of its own, because one taken from the firings would go back
-- when retention removes the newest of them.
CREATE TABLE runner_fence (
    only_row         INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    minted           INTEGER NOT NULL
) STRICT;

INSERT INTO runner_fence (only_row, minted) VALUES (1, 0);
