-- Takes one from each of several request limits, or from none of them.
--
-- KEYS: the limits of one request, all with the same hash tag. ARGV: three for each:
-- how many pass in a window, the window in milliseconds, 1 when the limit is only
-- tried out (it is counted, but refuses nothing).
--
-- A value is the sum of the takes and then, oldest first, for each slice of time (a
-- sixtieth of the window) the stamp of its newest take, in milliseconds of this
-- server's clock, and how many there were: at most 740 bytes, whatever the limit. A
-- slice counts until its newest take is a window old. A refused take writes nothing.
-- Every key has an expiry.
--
-- Answers { passed (0 or 1), then for each limit: takes that would still pass,
-- milliseconds to wait (0: none), milliseconds until nothing is counted any more }.
-- core/tg_rate.c is the same rule in C.

local SLICES = 60
local HEAD = 4
local SLICE = 12

local call, pack, unpack_at, floor = redis.call, struct.pack, struct.unpack, math.floor
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local values = call('MGET', unpack(KEYS))
local found = {}
local answer = { 1 }

-- the clock was set back: such takes are at most as old as now
local function set_back(value)
    local takes, size = 0, #value

    while size > HEAD do
        local newest, more = unpack_at('<dI4', value, size - SLICE + 1)
        if newest <= now then
            break
        end
        takes = takes + more
        size = size - SLICE
    end
    return value:sub(1, size) .. pack('<dI4', now, takes)
end

for i = 1, #KEYS do
    local limit, window = tonumber(ARGV[i * 3 - 2]), tonumber(ARGV[i * 3 - 1])
    local value = values[i] or pack('<I4', 0)
    local total = unpack_at('<I4', value)
    local first, newest, takes, wait = HEAD + 1, nil, nil, 0

    if #value > HEAD then
        newest, takes = unpack_at('<dI4', value, #value - SLICE + 1)
        if newest > now then
            value = set_back(value)
            newest, takes = unpack_at('<dI4', value, #value - SLICE + 1)
            call('SET', KEYS[i], value, 'PX', ARGV[i * 3 - 1])
        end
    end

    while first < #value do
        local stamp, old = unpack_at('<dI4', value, first)
        if now - stamp < window then
            break
        end
        total = total - old
        first = first + SLICE
    end

    if first > #value then
        newest = nil
    end

    if total >= limit then
        wait = unpack_at('<d', value, first) + window - now
        if ARGV[i * 3] ~= '1' then
            answer[1] = 0
        end
    end

    found[i] = { limit - total, wait, value, first, newest, takes, total, window }
end

for i = 1, #KEYS do
    local remaining, wait, value, first, newest, takes, total, window = unpack(found[i])
    local reset = newest and newest + window - now or 0

    if answer[1] == 1 and wait == 0 then
        local length, last = math.ceil(window / SLICES), #value

        if newest and floor(newest / length) == floor(now / length) then
            last = last - SLICE
        else
            takes = 0
        end
        call('SET', KEYS[i], pack('<I4', total + 1) .. value:sub(first, last)
            .. pack('<dI4', now, takes + 1), 'PX', ARGV[i * 3 - 1])
        remaining, reset = remaining - 1, window
    end

    answer[i * 3 - 1] = math.max(0, remaining)
    answer[i * 3] = wait
    answer[i * 3 + 1] = reset
end

return answer
