-- Removes a run that has not begun: what it was asked for is refused.
--
-- KEYS: [1] hash of the run, [2] its events, [3] its input, [4] the account's runs by
-- time of creation, [5] those of its session (without one: [4] again), [6] what its
-- invocation id stands for; without one it is left out. ARGV[1] is its id.
--
-- Answers "ok".

redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
redis.call('ZREM', KEYS[4], ARGV[1])
redis.call('ZREM', KEYS[5], ARGV[1])

if KEYS[6] and redis.call('HGET', KEYS[6], 'run') == ARGV[1] then
    redis.call('DEL', KEYS[6])
end

return 'ok'
