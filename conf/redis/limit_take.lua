-- Takes one from each of several request limits, or from none of them.
--
-- KEYS: the limits of one request, all with the same hash tag. ARGV: two for each:
-- three 32-bit numbers (how many pass in a window, the window in milliseconds, 1 when
-- the limit is only tried out: it is counted, but refuses nothing), and the window once
-- more as text.
--
-- A value is the sum of the takes and then, oldest first, for each slice of time (a
-- sixtieth of the window) the stamp of its newest take, in milliseconds of this
-- server's clock, and how many there were: at most 740 bytes, whatever the limit. A
-- slice counts until its newest take is a window old. A refused take writes nothing.
-- Every key has an expiry.
--
-- Answers 32-bit numbers: passed (0 or 1), then for each limit: takes that would still
-- pass, milliseconds to wait (0: none), milliseconds until nothing is counted any more.
-- Numbers are packed, little end first, both ways: lists of them cost this script a
-- third more. core/tg_rate.c is the same rule in C.

local SLICES = 60
local HEAD = 4
local SLICE = 12

local call, pack, at = redis.call, struct.pack, struct.unpack
local floor, ceil = math.floor, math.ceil
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local found, passed = {}, 1

for i = 1, #KEYS do
    local value = call('GET', KEYS[i])
    local limit, window, dry_run = at('<I4I4I4', ARGV[i * 2 - 1])
    local total, takes, kept, wait, reset = 0, 0, '', 0, 0

    if value then
        local size, first = #value, HEAD + 1
        local newest = at('<d', value, size - SLICE + 1)

        -- the clock was set back: such takes are at most as old as now
        if newest > now then
            while size > HEAD do
                local stamp, more = at('<dI4', value, size - SLICE + 1)
                if stamp <= now then
                    break
                end
                takes, size = takes + more, size - SLICE
            end
            value = value:sub(1, size) .. pack('<dI4', now, takes)
            call('SET', KEYS[i], value, 'PX', ARGV[i * 2])
            newest, size = now, #value
        end

        local stamp, old
        total, stamp, old = at('<I4dI4', value)

        while now - stamp >= window do
            total, first = total - old, first + SLICE
            if first > size then
                break
            end
            stamp, old = at('<dI4', value, first)
        end

        takes = 0

        if first < size then
            local length = ceil(window / SLICES)

            reset = newest + window - now

            if total >= limit then
                wait = stamp + window - now
                if dry_run == 0 then
                    passed = 0
                end
            end

            -- the last slice is the one that now is in: it gets one more
            if floor(newest / length) == floor(now / length) then
                takes = at('<I4', value, size - 3)
                size = size - SLICE
            end
            if first < size then
                kept = value:sub(first, size)
            end
        end
    end

    found[i] = { total, takes, kept, limit, window, wait, reset }
end

local answer = pack('<I4', passed)

for i = 1, #KEYS do
    local total, takes, kept, limit, window, wait, reset = unpack(found[i])

    if passed == 1 and wait == 0 then
        total, reset = total + 1, window
        call('SET', KEYS[i], pack('<I4', total) .. kept .. pack('<dI4', now, takes + 1), 'PX', ARGV[i * 2])
    end

    answer = answer .. pack('<I4I4I4', limit - total, wait, reset)
end

return answer
