-- Takes the outputs that a run waits for; all of them or none.
--
-- KEYS: [1] hash of the run.
--
-- ARGV: [1] a digest of the outputs, [2] what the run waits for (its required_action),
-- as it was when they were checked, then fields and values.
--
-- Answers { "gone" }, { "ok" or "same" (they were taken before), the number of the last
-- event before the run goes on }, { "late" }, { "other", status } when it does not wait
-- for this.

local call = redis.call
local have = call('HMGET', KEYS[1], 'status', 'submitted', 'submitted_after', 'required_action',
    'waits_until', 'seq')

if not have[1] then
    return { 'gone' }
end

if have[2] == ARGV[1] then
    return { 'same', have[3] }
end

if have[1] ~= 'requires_action' or have[4] ~= ARGV[2] then
    return { 'other', have[1] }
end

local time = call('TIME')

if tonumber(have[5] or '0') <= tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000) then
    return { 'late' }
end

call('HSET', KEYS[1], 'status', 'queued', 'lease', 0, 'waits_until', 0, 'submitted', ARGV[1],
    'submitted_after', have[6], unpack(ARGV, 3))
call('HDEL', KEYS[1], 'required_action')

return { 'ok', have[6] }
