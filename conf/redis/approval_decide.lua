-- Decides an approval, or reads it.
--
-- KEYS: [1] the approval, a hash, [2] the account's pending ones.
--
-- ARGV: [1] "approved", "rejected", or "" to read only; [2] the reason of whoever
-- decides; [3] what the names of the hashes of runs begin with (they have the hash tag
-- of KEYS[1]).
--
-- An approval whose time is over, or whose run does not wait for it any more, is
-- expired, whoever notices first. When the last one of a pause is decided the run may
-- go on.
--
-- Answers { "gone" }, or { word, run, "1" when the run may go on, fields of the approval
-- … } where word is "ok", "already_decided" or "approval_expired" and fields are those
-- of FIELDS.

local FIELDS = { 'id', 'status', 'created', 'expires', 'decided', 'reason', 'document' }

local call = redis.call
local have = call('HMGET', KEYS[1], 'status', 'expires', 'run', 'id')
local status, run, id = have[1], have[3], have[4]

if not status then
    return { 'gone' }
end

local time = call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
local run_key = ARGV[3] .. run
local word, go_on = 'ok', ''

if status == 'pending' and (tonumber(have[2]) <= now
    or call('HGET', run_key, 'status') ~= 'requires_action') then
    status = 'expired'
    call('HSET', KEYS[1], 'status', status)
    call('ZREM', KEYS[2], id)
end

local function open_ones()
    local open = 0
    for other in string.gmatch(call('HGET', run_key, 'approvals') or '', '%S+') do
        if call('ZSCORE', KEYS[2], other) then
            open = open + 1
        end
    end
    return open
end

if ARGV[1] ~= '' then
    if status == 'expired' then
        word = 'approval_expired'
    elseif status ~= 'pending' then
        word = 'already_decided'
    else
        call('HSET', KEYS[1], 'status', ARGV[1], 'decided', time[1], 'reason', ARGV[2])
        call('ZREM', KEYS[2], id)

        if open_ones() == 0 then
            call('HSET', run_key, 'status', 'queued', 'lease', 0, 'waits_until', 0)
            call('HDEL', run_key, 'required_action')
            go_on = '1'
        end
    end
end

local answer = { word, run, go_on }

for index, value in ipairs(call('HMGET', KEYS[1], unpack(FIELDS))) do
    answer[3 + index] = value or ''
end

return answer
