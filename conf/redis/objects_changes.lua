-- The objects of the control plane that changed after revision ARGV[1].
--
-- KEYS[1] is the number of the last change, KEYS[2] a hash of the objects by
-- "project/kind/id", KEYS[3] a sorted set of the same names by the number of the
-- change that touched each last (also of those that are gone).
--
-- At most ARGV[2] objects and about ARGV[3] bytes are answered at once:
-- { last change, change up to which this answer tells, name, object, … } with
-- an empty object for one that is gone.

local last = tonumber(redis.call('GET', KEYS[1]) or '0')
local from = tonumber(ARGV[1])
local count = tonumber(ARGV[2])
local room = tonumber(ARGV[3])

-- a store that was set back to an older state begins anew
if from > last then
    return { last, -1 }
end

if from == last then
    return { last, last }
end

local rows = redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. ARGV[1], '+inf',
                        'WITHSCORES', 'LIMIT', 0, count)
local upto = last
local answer = { last, upto }

for i = 1, #rows, 2 do
    local object = redis.call('HGET', KEYS[2], rows[i]) or ''
    answer[#answer + 1] = rows[i]
    answer[#answer + 1] = object
    room = room - #object

    if room <= 0 or i / 2 >= count - 1 then
        upto = tonumber(rows[i + 1])
        break
    end
end

answer[2] = upto

return answer
