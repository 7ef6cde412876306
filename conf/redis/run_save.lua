-- Writes down what a run has come to, for the one who drives it.
--
-- KEYS: [1] hash of the run, [2] its events, [3] its input, [4] what its invocation
-- id stands for; without one it is left out.
--
-- ARGV: [1] what for: "intent" (before a side effect), "outcome" (after it),
-- "checkpoint", "events", "renew", "pause" or "end"; [2] who drives it, [3] for how
-- many ms from now (a pause: how long it waits, 0 when a field says until when),
-- [4] for how many seconds a run is kept, [5] the status of a
-- pause or an end, [6] how many seconds an ended invocation is remembered, [7] how
-- many events a run may have, [8] how many arguments of fields follow, then those
-- (names and values), then events: each its type, and its members as JSON that
-- begins with a comma, or nothing.
--
-- An outcome is written even when the run has ended or is driven by somebody else,
-- unless that one has noted one: what was done was done. All else is then refused.
--
-- Answers "ok", "gone", "lost" (somebody else drives it), "full" (too many events),
-- or the status of a run that has ended.

local LIVE = { queued = true, running = true, requires_action = true }

local now = redis.call('HMGET', KEYS[1], 'status', 'owner', 'run', 'seq')
local status, owner, run, seq = now[1], now[2], now[3], tonumber(now[4])

if not status then
    return 'gone'
end

local fields = tonumber(ARGV[8])
local first = 9 + fields

if not LIVE[status] or owner ~= ARGV[2] then
    if ARGV[1] == 'outcome' then
        for at = 9, first - 1, 2 do
            redis.call('HSETNX', KEYS[1], ARGV[at], ARGV[at + 1])
        end
    end
    return LIVE[status] and 'lost' or status
end

local ending = ARGV[1] == 'end'
local pausing = ARGV[1] == 'pause'

if seq + (#ARGV - first + 1) / 2 > tonumber(ARGV[7]) and not ending then
    return 'full'
end

if fields > 0 then
    redis.call('HSET', KEYS[1], unpack(ARGV, 9, first - 1))
end

local time = redis.call('TIME')

for at = first, #ARGV, 2 do
    seq = seq + 1
    redis.call('XADD', KEYS[2], seq .. '-0', 'e', string.format(
        '{"type":"%s","seq":%d,"run":"%s","at":%s%s}', ARGV[at], seq, run, time[1],
        ARGV[at + 1]))
end

if #ARGV >= first then
    redis.call('HSET', KEYS[1], 'seq', seq)
    redis.call('EXPIRE', KEYS[2], ARGV[4])
end

local later = string.format('%d', tonumber(time[1]) * 1000
    + math.floor(tonumber(time[2]) / 1000) + tonumber(ARGV[3]))

if not ending and not pausing then
    redis.call('HSET', KEYS[1], 'lease', later)
    return 'ok'
end

if pausing and ARGV[3] ~= '0' then
    redis.call('HSET', KEYS[1], 'waits_until', later)
end

redis.call('HSET', KEYS[1], 'status', ARGV[5], 'lease', 0)
redis.call('HDEL', KEYS[1], 'owner')
redis.call('EXPIRE', KEYS[1], ARGV[4])

if ending then
    redis.call('HSET', KEYS[1], 'ended', time[1])
    redis.call('DEL', KEYS[3])
    if KEYS[4] then
        redis.call('EXPIRE', KEYS[4], ARGV[6])
    end
else
    redis.call('EXPIRE', KEYS[3], ARGV[4])
end

return 'ok'
