-- effect_path
-- $1 search_path, as effect_begin found it
-- The work may have looked for its tables elsewhere; the ledger's are where they were.
SELECT set_config('search_path', $1, true)
