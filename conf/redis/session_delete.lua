-- Deletes a session with all its messages.
--
-- KEYS: the session (a hash) and the list of its messages.
--
-- Answers the run that was under way in it or an empty text, or nil when there is no
-- such session.

if redis.call('EXISTS', KEYS[1]) == 0 then
    return false
end

local run = redis.call('HGET', KEYS[1], 'run')

redis.call('DEL', KEYS[1], KEYS[2])

return run or ''
