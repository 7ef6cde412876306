-- Adds steps to the list of a run, each a JSON object as the API shows it.
--
-- KEYS[1] is that list, oldest first. ARGV[1] is for how many seconds it is kept
-- from now on, the others are the steps; there is at least one.
--
-- Answers how many steps the run has.

local count = redis.call('RPUSH', KEYS[1], unpack(ARGV, 2))

redis.call('EXPIRE', KEYS[1], ARGV[1])

return count
