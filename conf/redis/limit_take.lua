-- Takes one from each of several request limits, or from none of them.
--
-- KEYS: the limits of one request, all with the same hash tag. ARGV: two for each:
-- three 32-bit numbers (how many pass in a window, the window in milliseconds, 1 when
-- the limit is only tried out: it is counted, but refuses nothing), and as text how long
-- a key lives: a window and a slice.
--
-- A value is the sum of the takes, and for each slice of time (a sixtieth of the window)
-- the stamp of its newest take, in milliseconds of this server's clock, and how many
-- there were: first the newest slice, then the others, oldest first. At most 740 bytes,
-- whatever the limit; of these 16 are written for one more take in a slice. A slice
-- counts until its newest take is a window old. A refused take writes nothing.
--
-- Answers 32-bit numbers: passed (0 or 1), then for each limit: takes that would still
-- pass, milliseconds to wait (0: none), milliseconds until nothing is counted any more.
-- Numbers are packed, little end first, both ways: lists of them cost this script a
-- third more. core/tg_rate.c is the same rule in C.

local SLICES = 60
local HEAD = 16      -- the sum and the newest slice
local SLICE = 12

local call, pack, at = redis.call, struct.pack, struct.unpack
local floor, ceil = math.floor, math.ceil
local time = call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)

-- the clock was set back: such takes are at most as old as now
local function set_back(i, value)
    local total, _, takes = at('<I4dI4', value)
    local size = #value

    while size > HEAD do
        local stamp, more = at('<dI4', value, size - SLICE + 1)
        if stamp <= now then
            break
        end
        takes, size = takes + more, size - SLICE
    end
    value = pack('<I4dI4', total, now, takes) .. value:sub(HEAD + 1, size)
    call('SET', KEYS[i], value, 'PX', ARGV[i * 2])
    return value
end

-- how a limit stands, and what take() needs of it
local function look(i)
    local value = call('GET', KEYS[i])
    local limit, window, dry_run = at('<I4I4I4', ARGV[i * 2 - 1])

    if not value then
        return limit, window, dry_run, 0, 0, 0
    end

    local total, newest, takes = at('<I4dI4', value)

    if newest > now then
        value = set_back(i, value)
        total, newest, takes = at('<I4dI4', value)
    end

    local first, size, oldest = HEAD + 1, #value, newest

    while first < size do
        local stamp, old = at('<dI4', value, first)
        if now - stamp < window then
            oldest = stamp
            break
        end
        total, first = total - old, first + SLICE
    end

    if now - newest >= window then
        return limit, window, dry_run, 0, 0, 0
    end
    return limit, window, dry_run, total < limit and 0 or oldest + window - now,
        newest + window - now, total, newest, takes, value, first
end

local function take(i, window, total, newest, takes, value, first)
    local length, kept = ceil(window / SLICES), ''

    if newest and floor(newest / length) == floor(now / length) then
        if first == HEAD + 1 then
            call('SETRANGE', KEYS[i], '0', pack('<I4dI4', total + 1, now, takes + 1))
            return
        end
        kept = value:sub(first)

    elseif newest then
        kept, takes = value:sub(first) .. pack('<dI4', newest, takes), 0

    else
        takes = 0
    end
    call('SET', KEYS[i], pack('<I4dI4', total + 1, now, takes + 1) .. kept, 'PX', ARGV[i * 2])
end

-- nearly always there is one, and it needs no tables
if #KEYS == 1 then
    local limit, window, dry_run, wait, reset, total, newest, takes, value, first = look(1)

    if wait == 0 then
        take(1, window, total, newest, takes, value, first)
        return pack('<I4I4I4I4', 1, limit - total - 1, 0, window)
    end
    return pack('<I4I4I4I4', dry_run, limit - total, wait, reset)
end

local found, passed = {}, 1

for i = 1, #KEYS do
    found[i] = { look(i) }
    if found[i][4] > 0 and found[i][3] == 0 then
        passed = 0
    end
end

local answer = pack('<I4', passed)

for i = 1, #KEYS do
    local limit, window, _, wait, reset, total, newest, takes, value, first = unpack(found[i], 1, 10)

    if passed == 1 and wait == 0 then
        take(i, window, total, newest, takes, value, first)
        total, reset = total + 1, window
    end
    answer = answer .. pack('<I4I4I4', limit - total, wait, reset)
end

return answer
