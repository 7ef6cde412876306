-- The part of a run in a session: it begins, says what would be kept of it so far, and
-- ends. One run at a time has the session; another one takes it away.
--
-- KEYS: the session (a hash) and the list of its messages, oldest first, each
--
--   {"id":"msg_…","created_at":…,"segment":…,<head>,"bytes":<n>,"message":<n bytes>}
--
-- whose last member is the message as models get it, to the byte. The head is the
-- caller's and begins with "run".
--
-- ARGV: [1] "begin", "keep" or "end"; [2] for how many seconds the session is kept
-- from now on; [3] the run; of "begin" and "keep" [4] all its messages so far, packed: of
-- each the lengths of its head and of itself (32 bits, little end first), then both. What
-- a run has kept last is what stays of it, when it ends and when it is taken away, so
-- that is never a call without a result.
--
-- "keep" and "end" answer "ok", "gone" when another run has the session, or "none"
-- when it was deleted. Of "keep" also: [5] for calls that were handed out: what is to
-- stand for the result of each, packed in the same way, its head with "call_id". Whoever
-- begins next answers them, or they have that result.
--
-- Of "begin" also: [5] the end user, or "" for an anonymous one; [6] the agent and its
-- version; [7] what a new segment offers; [8] after how many idle seconds a new one
-- begins; [9] "1" when one is asked for; [10] "1" to refuse while another run is under
-- way; [11] how many bytes of history and new messages at most; [12] "1" to make a
-- session that is not there; [13] what the names of the hashes of runs begin with; [14]
-- ids of calls that the messages answer, with blanks between them.
--
-- It answers { "none" }, { "user" } when the session is another end user's,
-- { "busy", run }, { "gone" } when the run was ended or has lost the session, { "call",
-- id } when no such call was handed out, or { "ok", segment, what it offers, 1 when it
-- is a new one, history (messages with commas between them), the run it was taken from
-- or "", what the run has kept (of one that begins again) }.

local MESSAGES_MAX = 10000
local BYTES_MAX = 32 * 1024 * 1024
local LIVE = { queued = true, running = true, requires_action = true }

local call = redis.call
local session, messages = KEYS[1], KEYS[2]
local verb, retention, run, packed = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local time = call('TIME')
local now = tonumber(time[1])

local function number(field)
    return tonumber(call('HGET', session, field) or '0')
end

-- head, message and both as they are packed, of each in a packed list
local function each(list)
    local at = 1

    return function()
        if at > #list then
            return nil
        end

        local begin, head, size, from = at, struct.unpack('<I4I4', list, at)

        at = from + head + size

        return list:sub(from, from + head - 1), list:sub(from + head, at - 1), list:sub(begin, at - 1)
    end
end

local function push(list)
    local count, bytes, segment = number('count'), number('bytes'), number('segment')

    for head, text in each(list) do
        count = count + 1

        local entry = string.format('{"id":"msg_%08d%s","created_at":%d,"segment":%d,', count,
            redis.sha1hex(session .. count .. text):sub(1, 14), now, segment)
            .. head .. ',"bytes":' .. #text .. ',"message":' .. text .. '}'

        call('RPUSH', messages, entry)
        bytes = bytes + #entry
    end

    local length = call('LLEN', messages)

    while length > MESSAGES_MAX or (bytes > BYTES_MAX and length > 0) do
        bytes = bytes - #call('LPOP', messages)
        length = length - 1
    end

    call('HSET', session, 'count', count, 'bytes', bytes)
end

local function keep_alive()
    call('HSET', session, 'at', now)
    call('EXPIRE', session, retention)
    call('EXPIRE', messages, retention)
end

local exists = call('EXISTS', session) == 1
local had = call('HGET', session, 'run') or ''

if verb ~= 'begin' then
    if had ~= run then
        return exists and 'gone' or 'none'
    end

    if verb == 'keep' then
        call('HSET', session, 'pending', packed, 'open', ARGV[5])
    else
        push(call('HGET', session, 'pending') or '')
        call('HDEL', session, 'run', 'pending')
    end

    keep_alive()
    return 'ok'
end

-- begin: what forbids it

local user, agent, offered, idle, most = ARGV[5], ARGV[6], ARGV[7], tonumber(ARGV[8]), tonumber(ARGV[11])
local runs = ARGV[13]

if not exists and ARGV[12] ~= '1' then
    return { 'none' }
end

local bound = call('HGET', session, 'user') or ''

if bound ~= '' and bound ~= user then
    return { 'user' }
end

-- whether a run may still get further: one that has waited too long for its caller may
-- not, though nobody has said so yet
local function live(id)
    local have = call('HMGET', runs .. id, 'status', 'waits_until')
    local waits = tonumber(have[2] or '0')

    return LIVE[have[1]] and not (have[1] == 'requires_action' and waits > 0
        and waits <= now * 1000 + math.floor(tonumber(time[2]) / 1000))
end

local status = call('HGET', runs .. run, 'status')

if (status and not LIVE[status]) or call('HGET', session, 'taken') == run then
    return { 'gone' }
end

local other = had ~= '' and had ~= run
local taken = other and live(had) and had or ''

if taken ~= '' and ARGV[10] == '1' then
    return { 'busy', had }
end

local answers, unanswered = {}, {}

if had ~= run then
    for id in ARGV[14]:gmatch('%S+') do
        answers[id] = true
    end

    for head, _, both in each(call('HGET', session, 'open') or '') do
        local id = head:match('"call_id":"([^"]*)"')

        if not answers[id] then
            unanswered[#unanswered + 1] = both
        end
        answers[id] = nil
    end

    if next(answers) then
        return { 'call', (next(answers)) }
    end
end

-- begin: it is allowed

local started, kept = 0, ''

if not exists then
    call('HSET', session, 'created_at', now, 'at', now)
end

if had == run then
    kept = call('HGET', session, 'pending') or ''
else
    push((call('HGET', session, 'pending') or '') .. table.concat(unanswered))

    if bound ~= user or call('HGET', session, 'agent_version') ~= agent or ARGV[9] == '1'
       or now - number('at') > idle then
        call('HSET', session, 'segment', number('segment') + 1, 'agent_version', agent,
            'offered', offered, 'user', user)
        started = 1
    end

    call('HSET', session, 'run', run, 'pending', packed, 'open', '', 'taken', taken)
end

-- the history: what is too much is dropped in whole exchanges (all messages of a run)
-- and stays dropped; a quarter more than needed, so that this happens seldom

local gone = number('count') - call('LLEN', messages)
local from = math.max(number('from'), gone)
local entries = call('LRANGE', messages, from - gone, -1)
local owners, total = {}, 0

for i, entry in ipairs(entries) do
    local size, at = entry:match('"bytes":(%d+),"message":()')

    owners[i] = entry:match('"run":"([^"]*)"')
    entries[i] = entry:sub(at, at + size - 1)
    total = total + size
end

for _, text in each(packed) do
    total = total + #text
end

local first = 1

if total > most then
    most = most * 3 / 4

    while first <= #entries and (total > most or owners[first] == owners[first - 1]) do
        total = total - #entries[first]
        first = first + 1
    end
end

call('HSET', session, 'from', from + first - 1)
keep_alive()

return { 'ok', number('segment'), call('HGET', session, 'offered') or '', started,
    table.concat(entries, ',', first), taken, kept }
