-- Ends a run from outside, whoever drives it.
--
-- KEYS: [1] hash of the run, [2] its events, [3] its input, [4] what its invocation
-- id stands for; without one it is left out.
--
-- ARGV: [1] "cancelled" or "superseded", [2] for how many seconds a run is kept,
-- [3] for how many an ended invocation is remembered.
--
-- Answers { "gone" }, { status } of a run that had ended before, or { "done", who
-- drove it ("" = nobody) }.

local LIVE = { queued = true, running = true, requires_action = true }

local have = redis.call('HMGET', KEYS[1], 'status', 'owner', 'run')

if not have[1] then
    return { 'gone' }
end

if not LIVE[have[1]] then
    return { have[1] }
end

local now = redis.call('TIME')[1]
local seq = redis.call('HINCRBY', KEYS[1], 'seq', 1)

redis.call('HSET', KEYS[1], 'status', ARGV[1], 'ended', now, 'lease', 0)
redis.call('XADD', KEYS[2], seq .. '-0', 'e', string.format(
    '{"type":"run.%s","seq":%d,"run":"%s","at":%s}', ARGV[1], seq, have[3], now))
redis.call('EXPIRE', KEYS[1], ARGV[2])
redis.call('EXPIRE', KEYS[2], ARGV[2])
redis.call('DEL', KEYS[3])

if KEYS[4] then
    redis.call('EXPIRE', KEYS[4], ARGV[3])
end

return { 'done', have[2] or '' }
