-- Changes objects of the control plane, all of them or none.
--
-- KEYS: [1] hash of the number of the last change and of when the store was begun
-- (see objects_changes), [2] hash of objects, [3] sorted set of
-- names by change (see objects_changes), [4] hash of unique names, [5] hash of how
-- many objects of a kind a project has, [6] hash of frozen versions.
--
-- ARGV: groups of eight, one an object:
--   verb      "create", "update", "delete", or "version" (a frozen version)
--   name      "project/kind/id"; of a version with "@number" behind it
--   kind      "project/kind", for counting
--   unique    what nobody else may have, or ""
--   before    what it had until now, or ""
--   expected  the version that it has now; "" = any
--   most      how many the project may have of the kind
--   object    JSON; for "delete" how many frozen versions go with it, or nothing
--
-- Answers { "ok", version of the first object }, or { code, 0 }.

local SIZE = 8

local function version_of(name)
    local object = redis.call('HGET', KEYS[2], name)
    return object and tonumber(string.match(object, '^%d+'))
end

local function fault(at)
    local verb, name, kind, unique = ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3]

    if verb == 'version' then
        return nil
    end

    local version = version_of(name)

    if verb == 'create' then
        if version then
            return 'version_conflict'
        end
        if tonumber(redis.call('HGET', KEYS[5], kind) or '0') >= tonumber(ARGV[at + 6]) then
            return 'too_many'
        end
    elseif not version then
        return 'not_found'
    elseif ARGV[at + 5] ~= '' and tonumber(ARGV[at + 5]) ~= version then
        return 'version_conflict'
    end

    if verb ~= 'delete' and unique ~= '' and unique ~= ARGV[at + 4]
       and redis.call('HEXISTS', KEYS[4], unique) == 1 then
        return 'name_conflict'
    end

    return nil
end

local function apply(at)
    local verb, name, kind = ARGV[at], ARGV[at + 1], ARGV[at + 2]
    local unique, before, object = ARGV[at + 3], ARGV[at + 4], ARGV[at + 7]

    if verb == 'version' then
        redis.call('HSET', KEYS[6], name, object)
        return 0
    end

    local version = (version_of(name) or 0) + 1
    local change = redis.call('HINCRBY', KEYS[1], 'change', 1)
    redis.call('ZADD', KEYS[3], change, name)

    if before ~= '' and before ~= unique then
        redis.call('HDEL', KEYS[4], before)
    end

    if verb == 'delete' then
        for number = 1, tonumber(object) or 0 do
            redis.call('HDEL', KEYS[6], name .. '@' .. number)
        end
        redis.call('HDEL', KEYS[2], name)
        redis.call('HINCRBY', KEYS[5], kind, -1)
        return version
    end

    if unique ~= '' then
        redis.call('HSET', KEYS[4], unique, name)
    end

    if verb == 'create' then
        redis.call('HINCRBY', KEYS[5], kind, 1)
    end

    redis.call('HSET', KEYS[2], name, version .. ' ' .. object)

    return version
end

for at = 1, #ARGV, SIZE do
    local code = fault(at)
    if code then
        return { code, 0 }
    end
end

local now = redis.call('TIME')
redis.call('HSETNX', KEYS[1], 'begun', now[1] .. '.' .. now[2])

local first

for at = 1, #ARGV, SIZE do
    local version = apply(at)
    first = first or version
end

return { 'ok', first }
