-- Reads some of the messages of a session.
--
-- KEYS: the session (a hash) and the list that session_run fills. ARGV[1] is the id of
-- the message after which to begin, or empty; ARGV[2] how many messages at most;
-- ARGV[3] how many bytes of them at most, though always one message.
--
-- Answers nil when there is no such session, { -1 } when it has no such message, else
-- { 1 or 0 (whether there are more), messages }.

local after, limit, bytes = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

if redis.call('EXISTS', KEYS[1]) == 0 then
    return false
end

local length = redis.call('LLEN', KEYS[2])
local first = 0

if after ~= '' then

    -- an id begins with the message's number in the session; the oldest may be gone

    local gone = tonumber(redis.call('HGET', KEYS[1], 'count') or '0') - length
    local head = '{"id":"' .. after .. '"'

    first = (tonumber(string.match(after, '^msg_(%d%d%d%d%d%d%d%d)')) or 0) - gone

    local entry = first > 0 and redis.call('LINDEX', KEYS[2], first - 1)

    if not entry or string.sub(entry, 1, #head) ~= head then
        return { -1 }
    end
end

local page = { 0 }

for index = first, math.min(first + limit, length) - 1 do
    local entry = redis.call('LINDEX', KEYS[2], index)

    bytes = bytes - #entry

    if bytes < 0 and #page > 1 then
        break
    end

    page[#page + 1] = entry
end

if first + #page - 1 < length then
    page[1] = 1
end

return page
