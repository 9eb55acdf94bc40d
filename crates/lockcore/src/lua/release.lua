-- release: delete a lock that is still ours, and say what has been done. One atomic step.
--
-- KEYS[1]  the lock
-- KEYS[2]  the done marker of the same lock
-- ARGV[1]  token
-- ARGV[2]  subject that is done, or '' to leave no marker
-- ARGV[3]  life of the marker in milliseconds
--
-- Returns  1  released
--          0  gone, or someone else's: neither the lock nor the marker is touched

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end

redis.call('DEL', KEYS[1])

if ARGV[2] ~= '' then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
end

return 1
