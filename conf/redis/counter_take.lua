-- Takes from a rolling window: at most ARGV[1] takes in any ARGV[2] seconds. ARGV[3]
-- are wanted now; as many as fit pass.
--
-- KEYS[1] is a list of the stamps of the takes that passed, in microseconds of
-- this server's clock, oldest first and never longer than the limit. A refused
-- take leaves no stamp. The key always has an expiry.
--
-- Answers { passed, takes that would still pass, seconds to wait (0: all passed) }.
-- core/tg_window.c is the same rule in C.

local key = KEYS[1]
local limit = tonumber(ARGV[1])
local window = tonumber(ARGV[2]) * 1000000
local takes = tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local count = redis.call('LLEN', key)

local function stamp(index)
    return tonumber(redis.call('LINDEX', key, index))
end

-- tostring() would round a number of sixteen digits
local function text(number)
    return string.format('%.0f', number)
end

-- the clock was set back: such a take is at most as old as now
for index = count - 1, 0, -1 do
    if stamp(index) <= now then
        break
    end
    redis.call('LSET', key, index, text(now))
end

while count > 0 and now - stamp(0) >= window do
    redis.call('LPOP', key)
    count = count - 1
end

local passed = math.max(0, math.min(takes, limit - count))
local stamps = {}

for index = 1, passed do
    stamps[index] = text(now)
end

if passed > 0 then
    redis.call('RPUSH', key, unpack(stamps))
end

if passed > 0 or redis.call('PTTL', key) < 0 then
    redis.call('PEXPIRE', key, text(window / 1000))
end

if passed == takes then
    return { passed, limit - count - passed, 0 }
end

-- after a limit was lowered more than one has to drop out
local wait = stamp(count + passed - limit) + window - now
return { passed, 0, math.max(1, math.ceil(wait / 1000000)) }
