-- Keeps a response: all of it that others ask for later.
--
-- KEYS: the response (a hash) and the input of its request. ARGV: [1] for how many
-- seconds it is kept, [2] "1" when the hash is to be there already, [3] the input, the
-- others are fields and values of the hash. An input that comes later, in pieces, is
-- empty here.
--
-- Answers 1, or 0 when it was to be there and is not: it was deleted.

local response, input = KEYS[1], KEYS[2]

if ARGV[2] == '1' and redis.call('EXISTS', response) == 0 then
    return 0
end

redis.call('HSET', response, unpack(ARGV, 4))
redis.call('EXPIRE', response, ARGV[1])

if ARGV[3] ~= '' then
    redis.call('SET', input, ARGV[3], 'EX', ARGV[1])
end

return 1
