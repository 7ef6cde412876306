-- A page of what was meant to be done by an account's runs, and what came of it,
-- newest first.
--
-- KEYS: [1] the account's runs by time of creation.
--
-- ARGV: [1] what the names of their hashes begin with (they have the hash tag of
-- KEYS[1]), [2] the run that is meant, or "" for all runs of a session, [3] that
-- session, [4] the name or id of their agent, [5] how many to leave out, [6] how many
-- at most, [7] how many runs are looked at at most, [8] the checkpoint, a run and the
-- number of a round, whose intents are meant, or "".
--
-- Answers { how many there are, { run, invocation id, session, status of the run, call,
-- intent, outcome }, … }; what is not there is an empty text.

local HEAD = 'intent:'

local runs = { ARGV[2] }
local skip, wanted = tonumber(ARGV[5]), tonumber(ARGV[6])
local total, answer = 0, { 0 }

if ARGV[2] == '' then
    runs = redis.call('ZREVRANGE', KEYS[1], 0, tonumber(ARGV[7]) - 1)
end

-- intents of a run, newest first; those of one second by their rounds, then by the ids
-- of their calls
local function intents(fields)
    local found = {}

    for at = 1, #fields, 2 do
        if string.sub(fields[at], 1, #HEAD) == HEAD then
            found[#found + 1] = {
                call = string.sub(fields[at], #HEAD + 1), text = fields[at + 1],
                at = tonumber(string.match(fields[at + 1], '"at":(%d+)') or '0'),
                round = tonumber(string.match(fields[at + 1], '"round":(%d+)') or '0')
            }
        end
    end

    table.sort(found, function(a, b)
        if a.at ~= b.at then
            return a.at > b.at
        end
        if a.round ~= b.round then
            return a.round > b.round
        end
        return a.call > b.call
    end)

    return found
end

for _, id in ipairs(runs) do
    local name = ARGV[1] .. id
    local run = redis.call('HMGET', name, 'session', 'invocation', 'status', 'agent', 'agent_id')

    if run[3] and run[1] == ARGV[3]
        and (ARGV[4] == run[5] or ARGV[4] == string.match(run[4] or '', '^[^@]*'))
    then
        for _, intent in ipairs(intents(redis.call('HGETALL', name))) do
            local fits = ARGV[8] == '' or ARGV[8] == string.format('%s:%d', id, intent.round)

            total = total + (fits and 1 or 0)

            if fits and total > skip and #answer <= wanted then
                answer[#answer + 1] = { id, run[2] or '', run[1] or '', run[3], intent.call,
                    intent.text, redis.call('HGET', name, 'outcome:' .. intent.call) or '' }
            end
        end
    end
end

answer[1] = total

return answer
