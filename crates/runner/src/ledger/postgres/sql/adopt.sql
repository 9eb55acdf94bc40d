-- adopt
-- Notes which server keeps the ledger, and says which it was if it was another. A promotion goes on
-- counting timelines; another cluster (an upgrade, a dump that was put back) begins anew, so there the
-- sequence makes good what the timelines fall short of. One more, for values that did not come along.
-- The row is named by its key, or the planner expects thousands and compiles the statement, for seconds.
WITH here AS MATERIALIZED (
    SELECT runner_system() AS system, runner_timeline() AS timeline
), noted AS MATERIALIZED (
    SELECT system, timeline FROM runner_server WHERE only_row = 1 FOR NO KEY UPDATE
), raised AS MATERIALIZED (
    SELECT setval('runner_fence', nextval('runner_fence')
        + greatest(noted.timeline + 1 - here.timeline, 0) * 1000000000000) AS fence
    FROM noted, here
    WHERE noted.system <> here.system
)
UPDATE runner_server AS server SET system = here.system, timeline = here.timeline
FROM here, noted LEFT JOIN raised ON true
WHERE server.only_row = 1 AND (noted.system, noted.timeline) <> (here.system, here.timeline)
RETURNING noted.system, noted.timeline, raised.fence
