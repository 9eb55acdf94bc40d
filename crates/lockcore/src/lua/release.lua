-- release: delete a lock that is still ours, and set its done marker if asked to. One atomic step.
--
-- KEYS[1]  the lock
-- KEYS[2]  the done marker of the same lock
-- ARGV[1]  token
-- ARGV[2]  the subject that is done, or '' to set no marker
-- ARGV[3]  time until the marker expires, in milliseconds
--
-- Returns  1  released
--          0  the lock is gone or someone else's: neither lock nor marker is changed

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end

redis.call('DEL', KEYS[1])

if ARGV[2] ~= '' then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3])
end

return 1
