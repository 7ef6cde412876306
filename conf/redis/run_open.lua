-- Reads a run, and takes it over when that is asked for and nobody drives it.
--
-- KEYS: [1] hash of the run, [2] its events, [3] its input.
--
-- ARGV: [1] "read", "look" (may it be taken?) or "take"; [2] who asks, [3] for how
-- many ms it would drive the run, [4] for how many seconds a run is kept.
--
-- A run that waits for its caller longer than it may fails here, whoever asks first.
--
-- Answers { "gone" }, or { word, number, … }. word is "ended", "waiting" (for its
-- caller, until number), "held" (number: ms that are left of the lease), "free" or
-- "taken". "read" and "taken" are followed by the input (false: not wanted or gone)
-- and by the fields and values of the run.

local ENDED = { completed = true, failed = true, cancelled = true, superseded = true,
    expired = true }

local have = redis.call('HMGET', KEYS[1], 'status', 'lease', 'waits_until', 'run', 'late')
local status = have[1]

if not status then
    return { 'gone' }
end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local until_ms = tonumber(have[3] or '0')

local function fail_late()
    local seq = redis.call('HINCRBY', KEYS[1], 'seq', 1)
    local code = have[5] or 'tool_outputs_expired'
    redis.call('HSET', KEYS[1], 'status', 'failed', 'ended', time[1], 'error', code)
    redis.call('XADD', KEYS[2], seq .. '-0', 'e', string.format(
        '{"type":"run.failed","seq":%d,"run":"%s","at":%s,"error":{"code":"%s"}}', seq,
        have[4], time[1], code))
    redis.call('EXPIRE', KEYS[2], ARGV[4])
    redis.call('DEL', KEYS[3])
    status = 'failed'
end

if status == 'requires_action' and until_ms > 0 and until_ms <= now then
    fail_late()
end

local left = tonumber(have[2] or '0') - now
local answer

if ENDED[status] then
    answer = { 'ended', 0 }
elseif status == 'requires_action' then
    answer = { 'waiting', until_ms }
elseif status == 'running' and left > 0 then
    answer = { 'held', left }
else
    answer = { 'free', 0 }
end

if ARGV[1] == 'look' or (ARGV[1] == 'take' and answer[1] ~= 'free') then
    return answer
end

answer[3] = false

if ARGV[1] == 'take' then
    answer[1] = 'taken'
    redis.call('HSET', KEYS[1], 'status', 'running', 'owner', ARGV[2],
        'lease', string.format('%d', now + tonumber(ARGV[3])))
    redis.call('HINCRBY', KEYS[1], 'attempt', 1)
    answer[3] = redis.call('GET', KEYS[3])
end

for _, value in ipairs(redis.call('HGETALL', KEYS[1])) do
    answer[#answer + 1] = value
end

return answer
