-- A page of an account's pending approvals, those that expire first first.
--
-- KEYS: [1] the account's pending approvals by the time at which they expire.
--
-- ARGV: [1] what the names of their hashes begin with, [2] the same of the hashes of
-- runs (both have the hash tag of KEYS[1]), [3] the id after which to begin, or "",
-- [4] how many at most, [5] how many bytes of them at most, though always one.
--
-- Those whose time is over, or whose run does not wait for them any more, leave the
-- list here.
--
-- Answers { more (0 or 1; -1: there never was such an id), { fields of FIELDS }, … }.

local FIELDS = { 'id', 'status', 'created', 'expires', 'decided', 'reason', 'document' }

local call = redis.call
local time = call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local after, limit, bytes = ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])
local from = '-inf'

local function expire(id)
    call('ZREM', KEYS[1], id)
    if call('HGET', ARGV[1] .. id, 'status') == 'pending' then
        call('HSET', ARGV[1] .. id, 'status', 'expired')
    end
end

for _, id in ipairs(call('ZRANGEBYSCORE', KEYS[1], '-inf', string.format('%d', now))) do
    expire(id)
end

-- one that was decided meanwhile still says where to go on

if after ~= '' then
    from = call('HGET', ARGV[1] .. after, 'expires')
    if not from then
        return { -1 }
    end
end

local answer = { 0 }

for _, id in ipairs(call('ZRANGEBYSCORE', KEYS[1], from, '+inf')) do
    local passed = after ~= '' and id <= after and call('ZSCORE', KEYS[1], id) == from

    if not passed then
        local run = call('HGET', ARGV[1] .. id, 'run')

        if not run or call('HGET', ARGV[2] .. run, 'status') ~= 'requires_action' then
            expire(id)
        else
            local approval = call('HMGET', ARGV[1] .. id, unpack(FIELDS))
            bytes = bytes - #approval[7]

            if #answer > limit or (bytes < 0 and #answer > 1) then
                answer[1] = 1
                break
            end

            for index = 1, #FIELDS do
                approval[index] = approval[index] or ''
            end
            answer[#answer + 1] = approval
        end
    end
end

return answer
