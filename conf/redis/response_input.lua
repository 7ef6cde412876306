-- Adds a piece to the input of a response that is being kept.
--
-- KEYS: the response and its input. ARGV: [1] for how many seconds it is kept, [2] how
-- many bytes of the input there must be by now, [3] the piece.
--
-- Answers how many there are then, or 0 when the response was deleted or a piece is
-- missing.

local response, input = KEYS[1], KEYS[2]

if redis.call('EXISTS', response) == 0
    or redis.call('STRLEN', input) ~= tonumber(ARGV[2])
then
    return 0
end

local len = redis.call('APPEND', input, ARGV[3])

redis.call('EXPIRE', input, ARGV[1])

return len
