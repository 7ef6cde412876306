-- The objects of the control plane that changed after revision ARGV[1].
--
-- KEYS[1] is a hash of the number of the last change and of when the store was
-- begun, by which one that was emptied is told from what it was, KEYS[2] a hash of the objects by
-- "project/kind/id", KEYS[3] a sorted set of the same names by the number of the
-- change that touched each last (also of those that are gone).
--
-- At most ARGV[2] objects and about ARGV[3] bytes are answered at once:
-- { last change, change up to which this answer tells, begun, name, object, … }
-- with an empty object for one that is gone. ARGV[4] is what was answered as begun
-- before, or "".

local state = redis.call('HMGET', KEYS[1], 'change', 'begun')
local last = tonumber(state[1] or '0')
local begun = state[2] or ''
local from = tonumber(ARGV[1])
local count = tonumber(ARGV[2])
local room = tonumber(ARGV[3])

-- a store that was emptied or set back to an older state is read anew
if from > last or (ARGV[4] ~= '' and ARGV[4] ~= begun) then
    return { last, -1, begun }
end

if from == last then
    return { last, last, begun }
end

local rows = redis.call('ZRANGEBYSCORE', KEYS[3], '(' .. ARGV[1], '+inf',
                        'WITHSCORES', 'LIMIT', 0, count)
local upto = last
local answer = { last, upto, begun }

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
