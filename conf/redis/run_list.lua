-- A page of runs, newest first.
--
-- KEYS: [1] runs by time of creation, of an account or of a session.
--
-- ARGV: [1] what the names of their hashes begin with (they have the hash tag of
-- KEYS[1]), [2] the id to begin after, or "", [3] how many at most, [4] how many are
-- looked at at most (one that is gone, or was forgotten, is passed over), then the names
-- of the wanted fields.
--
-- Answers { more (0 or 1; -1: there is no such id), { values of the fields }, … }.

local from = 0

if ARGV[2] ~= '' then
    from = redis.call('ZREVRANK', KEYS[1], ARGV[2])
    if not from then
        return { -1 }
    end
    from = from + 1
end

local wanted = tonumber(ARGV[3])
local answer = { 0 }

for _, id in ipairs(redis.call('ZREVRANGE', KEYS[1], from, from + tonumber(ARGV[4]) - 1)) do
    local run = redis.call('HMGET', ARGV[1] .. id, unpack(ARGV, 5))

    if run[1] then
        if #answer > wanted then
            answer[1] = 1
            break
        end
        answer[#answer + 1] = run
    end
end

return answer
