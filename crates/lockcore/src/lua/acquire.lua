-- acquire: take the lock with its expiry, or say who holds it. One atomic step.
--
-- KEYS[1]  the lock
-- KEYS[2]  the done marker of the same lock
-- ARGV[1]  token, unique to this acquisition
-- ARGV[2]  ttl in milliseconds
-- ARGV[3]  the subject to look for in the done marker, or '' not to read the marker
--
-- Returns  {'acquired'}                       it is ours, now or since an earlier send of this token
--          {'done'}                           the marker contains the subject
--          {'held', token, milliseconds}      who has it, and the time until it expires (-1: no expiry)

local holder = redis.call('GET', KEYS[1])

-- The token is sent again because the first reply was lost. The expiry does not change: the holder
-- counts its trust from the first send.
if holder == ARGV[1] then
  return { 'acquired' }
end

if ARGV[3] ~= '' and redis.call('GET', KEYS[2]) == ARGV[3] then
  return { 'done' }
end

if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then
  return { 'acquired' }
end

return { 'held', holder, redis.call('PTTL', KEYS[1]) }
