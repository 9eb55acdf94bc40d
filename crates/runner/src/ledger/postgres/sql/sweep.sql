-- sweep
-- $1 namespace  $2 ids  $3 fences  $4 leases as seen  $5 max_crashes  $6 expires_in (ms)
-- A suspect is swept only as it was seen: the same fence (nobody took over) and the same lease (no
-- heartbeat since), and only if the lease is over by this server's clock too. SKIP LOCKED: of many
-- sweepers one gets the row, and a settle or heartbeat in flight wins over all of them.
WITH gone AS MATERIALIZED (
    SELECT firing.id, suspect.expires_in,
        CASE WHEN firing.delivery = 'at_most_once' THEN 'lost'
             WHEN firing.crashes + 1 > suspect.max_crashes THEN 'failed'
             WHEN firing.cancel_requested THEN 'cancelled'
             ELSE 'queued' END AS verdict
    FROM unnest($2::bigint[], $3::bigint[], $4::timestamptz[], $5::integer[], $6::bigint[])
        AS suspect (id, fence, lease_until, max_crashes, expires_in)
    JOIN runner_firings AS firing ON firing.id = suspect.id
        AND firing.fence = suspect.fence AND firing.lease_until = suspect.lease_until
    WHERE firing.namespace = $1 AND firing.state = 'running' AND firing.lease_until <= clock_timestamp()
    ORDER BY firing.id
    FOR UPDATE OF firing SKIP LOCKED
), swept AS (
    UPDATE runner_firings AS firing SET
        state = verdict,
        reason = CASE verdict WHEN 'failed' THEN 'crash_loop' WHEN 'cancelled' THEN NULL ELSE 'owner_lost' END,
        crashes = crashes + 1,
        finished_at = CASE WHEN verdict <> 'queued' THEN greatest(started_at, clock_timestamp()) END,
        due_at = CASE verdict WHEN 'queued' THEN clock_timestamp() END,
        expires_at = CASE verdict WHEN 'queued' THEN clock_timestamp() + expires_in * interval '1 millisecond' END,
        lease_until = NULL
    FROM gone
    WHERE firing.id = gone.id
    RETURNING firing.id, firing.fence, firing.job, firing.state, firing.reason,
        firing.attempt, firing.owner, firing.started_at, firing.error, firing.output
), superseded AS (
    INSERT INTO runner_attempts (firing_id, attempt, fence, owner, started_at, ended_at, reason, error, output)
    SELECT id, attempt, fence, owner, started_at, greatest(started_at, clock_timestamp()), reason, error, output
    FROM swept WHERE state = 'queued'
)
SELECT id, fence, job, state, reason FROM swept ORDER BY id
