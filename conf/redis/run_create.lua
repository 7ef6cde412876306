-- Makes a run, once for each invocation id.
--
-- KEYS: [1] hash of the run, [2] its input, [3] the account's runs by time of
-- creation, [4] those of its session (without one: [3] again), [5] what this invocation
-- id stands for; without one it is left out.
--
-- ARGV: [1] the run's id, [2] the request's fingerprint, [3] who drives it ("" =
-- nobody yet), [4] for how many ms, [5] for how many seconds a run is kept, [6] how
-- many bytes of input follow in all, [7] the first of them, then pairs of fields.
--
-- Answers { "new" }, { "same", id } for the same invocation of the same request, or
-- { "conflict", id } for another request.

if KEYS[5] then
    local other = redis.call('HMGET', KEYS[5], 'run', 'fingerprint')
    if other[1] then
        return { other[2] == ARGV[2] and 'same' or 'conflict', other[1] }
    end
end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local keep = tonumber(ARGV[5])

redis.call('HSET', KEYS[1], 'run', ARGV[1], 'created', time[1], 'seq', 0, 'attempt', 0,
    'input', ARGV[6], unpack(ARGV, 8))

if ARGV[3] == '' then
    redis.call('HSET', KEYS[1], 'status', 'queued', 'lease', 0)
else
    redis.call('HSET', KEYS[1], 'status', 'running', 'owner', ARGV[3],
        'lease', string.format('%d', now + tonumber(ARGV[4])))
end

redis.call('EXPIRE', KEYS[1], keep)
redis.call('SET', KEYS[2], ARGV[7], 'EX', keep)

for i = 3, 4 do
    redis.call('ZADD', KEYS[i], now, ARGV[1])
    redis.call('ZREMRANGEBYSCORE', KEYS[i], '-inf', string.format('%d', now - keep * 1000))
    redis.call('EXPIRE', KEYS[i], keep)
end

if KEYS[5] then
    redis.call('HSET', KEYS[5], 'run', ARGV[1], 'fingerprint', ARGV[2])
    redis.call('EXPIRE', KEYS[5], keep)
end

return { 'new' }
