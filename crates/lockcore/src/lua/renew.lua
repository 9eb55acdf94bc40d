-- renew: set the expiry of a lock that is still ours. One atomic step.
--
-- KEYS[1]  the lock
-- ARGV[1]  token
-- ARGV[2]  ttl in milliseconds, counted from now
--
-- Returns  1  renewed
--          0  the lock is gone or someone else's. It is never set here: a lost lock must not come back

if redis.call('GET', KEYS[1]) ~= ARGV[1] then
  return 0
end

return redis.call('PEXPIRE', KEYS[1], ARGV[2])
