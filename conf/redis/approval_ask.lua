-- Asks for approvals for the calls of a run, or takes what came of asking before.
--
-- KEYS: [1] the account's pending approvals by the time at which they expire, then the
-- approvals, hashes.
--
-- ARGV: [1] for how many ms they wait, [2] for how many seconds they are kept, [3] the
-- run, then of each: its id, what the call is bound to, and what it is for, as JSON.
--
-- One that was given is used up by this, for the call that it was asked for and no
-- other; the run that asks again, from another worker, is told so again.
--
-- Answers { when the first was made in seconds, when the last one expires in ms } of
-- this server's clock, then of each its status ("pending", "used", "rejected",
-- "expired", or "other": it is bound to something else) and the reason of the decision.

local call = redis.call
local time = call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local expires = string.format('%d', now + tonumber(ARGV[1]))
local answer = { time[1], expires }

local function ask(name, at)
    local have = call('HMGET', name, 'status', 'binding', 'reason', 'created', 'expires')
    local status = have[1]

    if not status then
        call('HSET', name, 'id', ARGV[at], 'status', 'pending', 'created', time[1],
            'expires', expires, 'run', ARGV[3], 'binding', ARGV[at + 1],
            'document', ARGV[at + 2])
        call('EXPIRE', name, ARGV[2])
        call('ZADD', KEYS[1], expires, ARGV[at])
        return 'pending', ''
    end

    if have[2] ~= ARGV[at + 1] then
        return 'other', ''
    end

    if status == 'approved' then
        status = 'used'
        call('HSET', name, 'status', status)
    elseif status == 'pending' then
        answer[1], answer[2] = have[4], have[5]
    end

    return status, have[3] or ''
end

for index = 2, #KEYS do
    local status, reason = ask(KEYS[index], 4 + (index - 2) * 3)
    answer[#answer + 1] = status
    answer[#answer + 1] = reason
end

call('EXPIRE', KEYS[1], ARGV[2])

return answer
