-- acquire: take the lock with its expiry, or say who holds it. One atomic step.
--
-- KEYS[1]  the lock
-- KEYS[2]  the done marker of the same lock
-- ARGV[1]  token, unique to this acquisition
-- ARGV[2]  ttl in milliseconds
-- ARGV[3]  subject that need not be done twice, or '' to take the lock whatever has been done
--
-- Returns  {'acquired'}                       it is ours, now or since an earlier send of this token
--          {'done'}                           the marker names the subject
--          {'held', token, milliseconds}      who has it, and how long yet (-1: without expiry)

local holder = redis.call('GET', KEYS[1])

-- A repeated send whose first reply was lost. The expiry stays as it is: the holder counts its trust
-- from the first send.
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
