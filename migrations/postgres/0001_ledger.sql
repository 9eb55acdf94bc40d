-- The ledger: one row per firing, and the constraints that make a second run impossible to record.
-- All times are this server's clock_timestamp(); no replica's clock is ever written.

-- Fences grow with every claim. Values are taken one by one (CACHE 1): a session that kept a stock of
-- them would hand out old numbers late. The count stays below 2^40, so that an epoch (the timeline of
-- the write-ahead log, should a failover ever lose commits) can be put above it without a new column.
CREATE SEQUENCE runner_fence AS bigint MINVALUE 1 MAXVALUE 1099511627775 CACHE 1 NO CYCLE;

CREATE TABLE runner_jobs (
    namespace        text        NOT NULL,
    name             text        NOT NULL,
    known_since      timestamptz NOT NULL,  -- since when the present schedule holds: no gap is older
    reconciled_until timestamptz,           -- up to where gaps have been decided, once for all replicas
    spec_hash        text        NOT NULL,
    paused_at        timestamptz,
    paused_by        text,
    paused_note      text,
    pruned_before    timestamptz,           -- retention has passed over earlier instants: never claim one again
    CONSTRAINT runner_jobs_pkey PRIMARY KEY (namespace, name)
);

CREATE TABLE runner_firings (
    id               bigint      GENERATED ALWAYS AS IDENTITY,
    namespace        text        NOT NULL,
    job              text        NOT NULL,
    scheduled_at     timestamptz NOT NULL,
    shard            integer     NOT NULL,
    trigger_key      text        NOT NULL DEFAULT '',
    origin           text        NOT NULL,
    state            text        NOT NULL,
    reason           text,
    attempt          integer     NOT NULL DEFAULT 0,
    crashes          integer     NOT NULL DEFAULT 0,
    fence            bigint,                -- of the newest claim; kept after the run for its late settle
    claim_id         uuid,                  -- of the newest claim: proof for a claimer that lost the answer
    owner            text,
    exclusive        boolean     NOT NULL,
    delivery         text        NOT NULL,
    due_at           timestamptz,
    expires_at       timestamptz,
    lease_until      timestamptz,
    cancel_requested boolean     NOT NULL DEFAULT false,
    created_at       timestamptz NOT NULL,
    started_at       timestamptz,
    finished_at      timestamptz,
    error            text,
    output           text,
    CONSTRAINT runner_firings_pkey PRIMARY KEY (id),
    -- A firing has one row, whatever the lock, the clocks or a woken replica believe.
    CONSTRAINT runner_firings_once UNIQUE (namespace, job, scheduled_at, shard, trigger_key),
    CONSTRAINT runner_firings_origin CHECK (origin IN ('schedule', 'catch_up', 'manual', 'backfill')),
    CONSTRAINT runner_firings_state CHECK
        (state IN ('queued', 'running', 'succeeded', 'failed', 'lost', 'cancelled', 'skipped')),
    CONSTRAINT runner_firings_delivery CHECK (delivery IN ('at_least_once', 'at_most_once')),
    CONSTRAINT runner_firings_counts CHECK (shard >= 0 AND attempt >= 0 AND crashes BETWEEN 0 AND attempt),
    -- A run without a lease could never be swept, and one without a fence could not be fenced.
    CONSTRAINT runner_firings_owned CHECK (state <> 'running' OR
        (attempt > 0 AND fence IS NOT NULL AND claim_id IS NOT NULL AND owner IS NOT NULL
         AND lease_until IS NOT NULL AND started_at IS NOT NULL)),
    -- A queued row that never falls due or never expires would wait in silence for ever.
    CONSTRAINT runner_firings_waits CHECK (state <> 'queued' OR
        (due_at IS NOT NULL AND expires_at IS NOT NULL)),
    CONSTRAINT runner_firings_ended CHECK (state IN ('queued', 'running') = (finished_at IS NULL))
);

-- No overlap, without Redis: one exclusive run of a job and shard at a time.
CREATE UNIQUE INDEX runner_firings_running ON runner_firings (namespace, job, shard)
    WHERE state = 'running' AND exclusive;

-- overlap = "queue": one waits, a further one is skipped.
CREATE UNIQUE INDEX runner_firings_waiting ON runner_firings (namespace, job, shard)
    WHERE state = 'queued' AND reason = 'overlap';

-- What the queue's poll and the sweep look through: small, however long the history is.
CREATE INDEX runner_firings_due ON runner_firings (namespace, job, due_at) WHERE state = 'queued';
CREATE INDEX runner_firings_leases ON runner_firings (namespace, lease_until) WHERE state = 'running';

-- Attempts that a later one superseded. Written once, never changed; they go with their firing.
CREATE TABLE runner_attempts (
    firing_id  bigint      NOT NULL,
    attempt    integer     NOT NULL,
    fence      bigint      NOT NULL,
    owner      text        NOT NULL,
    started_at timestamptz,
    ended_at   timestamptz NOT NULL,
    reason     text        NOT NULL,
    error      text,
    output     text,
    CONSTRAINT runner_attempts_pkey PRIMARY KEY (firing_id, attempt),
    CONSTRAINT runner_attempts_firing FOREIGN KEY (firing_id) REFERENCES runner_firings (id) ON DELETE CASCADE
);
