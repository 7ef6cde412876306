-- What was said before, for a response that goes on from another one: of each that
-- comes before it the input and what the model has added, newest first.
--
-- KEYS: the response to go on from, a hash. ARGV: [1] its id, [2] what the names of
-- responses begin with, [3] how many bytes are taken at most, [4] for how many seconds
-- they are kept from now on: what is used stays.
--
-- It answers { "none" } when there is no such response, { "live" } when one is not whole yet,
-- { "broken" } when one before it is gone, or { "ok", input, what was
-- added, … }. Whole responses are left out from the oldest on when there are too many
-- bytes, and with them what answers a call of theirs.

local PARTS_MAX = 1000

local call = redis.call
local id, prefix = ARGV[1], ARGV[2]
local left, ttl = tonumber(ARGV[3]), ARGV[4]
local answer = { 'ok' }
local flags = {}

for part = 1, PARTS_MAX do
    local response = prefix .. id
    local input = response .. ':input'
    local found = call('HMGET', response, 'status', 'previous', 'added', 'answers',
        'bytes')

    if not found[1] then
        return { part == 1 and 'none' or 'broken' }
    end

    local bytes = call('STRLEN', input)

    -- a long input comes in pieces

    if found[1] == 'in_progress' or found[1] == 'queued'
        or bytes ~= tonumber(found[5])
    then
        return { 'live' }
    end

    call('EXPIRE', response, ttl)
    call('EXPIRE', input, ttl)

    local added = found[3] or ''
    bytes = bytes + #added

    if bytes > left then
        break
    end

    left = left - bytes
    flags[#flags + 1] = found[4]
    answer[#answer + 1] = call('GET', input) or ''
    answer[#answer + 1] = added

    if not found[2] or found[2] == '' then
        return answer
    end

    id = found[2]
end

-- the oldest that is left must not answer a call that nobody sees

while flags[#flags] == '1' do
    flags[#flags] = nil
    answer[#answer] = nil
    answer[#answer] = nil
end

return answer
