-- Reads some of the steps of a run.
--
-- KEYS[1] is the list that run_steps_append fills. ARGV[1] is the id of the step
-- after which to begin, or empty; ARGV[2] how many steps at most; ARGV[3] how many
-- bytes of steps at most, though always one step.
--
-- Answers nil when there is no such run, { -1 } when it has no such step, else
-- { 1 or 0 (whether there are more), steps }.

local after, limit, bytes = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local steps = redis.call('LRANGE', KEYS[1], 0, -1)
local first = 1

if #steps == 0 then
    return false
end

if after ~= '' then
    local head = '{"id":"' .. after .. '"'

    first = 0

    for index = 1, #steps do
        if string.sub(steps[index], 1, #head) == head then
            first = index + 1
            break
        end
    end

    if first == 0 then
        return { -1 }
    end
end

local page = { 0 }

for index = first, #steps do
    bytes = bytes - #steps[index]

    if #page > limit or (bytes < 0 and #page > 1) then
        page[1] = 1
        break
    end

    page[#page + 1] = steps[index]
end

return page
