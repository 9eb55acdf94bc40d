-- The ledger of one host: the same tables, columns and constraints as in PostgreSQL.
-- All times are milliseconds since 1970 UTC by this host's clock, taken inside the statements.

-- The fence minted last. A counter of its own: one taken from the firings would go back when
-- retention removes the newest of them.
CREATE TABLE runner_fence (
    only_row         INTEGER NOT NULL PRIMARY KEY CHECK (only_row = 1),
    minted           INTEGER NOT NULL
) STRICT;

INSERT INTO runner_fence (only_row, minted) VALUES (1, 0);

CREATE TABLE runner_jobs (
    namespace        TEXT    NOT NULL,
    name             TEXT    NOT NULL,
    known_since      INTEGER NOT NULL,  -- since when the present schedule holds: no gap is older
    reconciled_until INTEGER,           -- up to where gaps have been decided, once for all replicas
    spec_hash        TEXT    NOT NULL,
    paused_at        INTEGER,
    paused_by        TEXT,
    paused_note      TEXT,
    pruned_before    INTEGER,           -- retention has passed over earlier instants: never claim one again
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
    fence            INTEGER,           -- of the newest claim; kept after the run for its late settle
    claim_id         TEXT,              -- of the newest claim: proof for a claimer that lost the answer
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
    CONSTRAINT runner_firings_origin CHECK (origin IN ('schedule', 'catch_up', 'manual', 'backfill')),
    CONSTRAINT runner_firings_state CHECK
        (state IN ('queued', 'running', 'succeeded', 'failed', 'lost', 'cancelled', 'skipped')),
    CONSTRAINT runner_firings_delivery CHECK (delivery IN ('at_least_once', 'at_most_once')),
    CONSTRAINT runner_firings_flags CHECK (exclusive IN (0, 1) AND cancel_requested IN (0, 1)),
    CONSTRAINT runner_firings_counts CHECK (shard >= 0 AND attempt >= 0 AND crashes BETWEEN 0 AND attempt),
    -- A run without a lease could never be swept, and one without a fence could not be fenced.
    CONSTRAINT runner_firings_owned CHECK (state <> 'running' OR
        (attempt > 0 AND fence IS NOT NULL AND claim_id IS NOT NULL AND owner IS NOT NULL
         AND lease_until IS NOT NULL AND started_at IS NOT NULL)),
    -- A queued row that never falls due or never expires would wait in silence for ever.
    CONSTRAINT runner_firings_waits CHECK (state <> 'queued' OR
        (due_at IS NOT NULL AND expires_at IS NOT NULL)),
    CONSTRAINT runner_firings_ended CHECK ((state IN ('queued', 'running')) = (finished_at IS NULL))
) STRICT;

-- A firing has one row, whatever the lock, the clocks or a woken replica believe.
CREATE UNIQUE INDEX runner_firings_once
    ON runner_firings (namespace, job, scheduled_at, shard, trigger_key);

-- No overlap, without Redis: one exclusive run of a job and shard at a time.
CREATE UNIQUE INDEX runner_firings_running ON runner_firings (namespace, job, shard)
    WHERE state = 'running' AND exclusive = 1;

-- overlap = "queue": one waits, a further one is skipped.
CREATE UNIQUE INDEX runner_firings_waiting ON runner_firings (namespace, job, shard)
    WHERE state = 'queued' AND reason = 'overlap';

-- What the queue's poll and the sweep look through: small, however long the history is.
CREATE INDEX runner_firings_due ON runner_firings (namespace, job, due_at) WHERE state = 'queued';
CREATE INDEX runner_firings_leases ON runner_firings (namespace, lease_until) WHERE state = 'running';

-- Attempts that a later one superseded. Written once, never changed; they go with their firing.
CREATE TABLE runner_attempts (
    firing_id        INTEGER NOT NULL,
    attempt          INTEGER NOT NULL,
    fence            INTEGER NOT NULL,
    owner            TEXT    NOT NULL,
    started_at       INTEGER,
    ended_at         INTEGER NOT NULL,
    reason           TEXT    NOT NULL,
    error            TEXT,
    output           TEXT,
    CONSTRAINT runner_attempts_pkey PRIMARY KEY (firing_id, attempt),
    CONSTRAINT runner_attempts_firing FOREIGN KEY (firing_id) REFERENCES runner_firings (id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
