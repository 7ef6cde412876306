-- The input of a response.
--
-- KEYS: the response (a hash) and its input. There are no arguments.
--
-- Answers { "none" } when there is no such response, { "live" } while pieces of the
-- input are still to come, or { "ok", the input }.

local bytes = redis.call('HGET', KEYS[1], 'bytes')

if not bytes then
    return { 'none' }
end

local input = redis.call('GET', KEYS[2]) or ''

if #input ~= tonumber(bytes) then
    return { 'live' }
end

return { 'ok', input }
