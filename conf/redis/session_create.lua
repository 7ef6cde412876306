-- Makes a session.
--
-- KEYS[1] is the session, a hash. ARGV[1] is for how many seconds it is kept from now
-- on, the others are its fields and their values.
--
-- Answers when it was made, in seconds of this server's clock, or nil when there is
-- one already.

if redis.call('EXISTS', KEYS[1]) == 1 then
    return false
end

local now = tonumber(redis.call('TIME')[1])

redis.call('HSET', KEYS[1], 'created_at', now, 'at', now, unpack(ARGV, 2))
redis.call('EXPIRE', KEYS[1], ARGV[1])

return now
